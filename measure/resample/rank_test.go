package resample

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/measure"
)

// TestShiftsHaveTheVarianceOfRanks checks the shifts, which widen the jackknife interval of a score
// by the variation of a rank, here the number of leading eigenvectors that hold a fraction of the
// variance. They are added to the replicates. The score is here the rank itself (slope 1). The
// variance of the shifts is a - b: b is the variance v of the fractional rank, and a is the
// variance of the rank rounded up, drawn with variance 2 v (see Shifts). If the fractional rank
// spreads over several integers, a is about 2 v + 1/12, where 1/12 is the variance of rounding, and
// a - b is about v + 1/12. If the fractional rank is far from an integer, a - b is about 0. If it
// is near one, a - b is about a, the variance of a choice between two integers.
func TestShiftsHaveTheVarianceOfRanks(t *testing.T) {
	t.Parallel()
	// Ten replicates, each of which leaves out 500 of 1,000 samples. Only the rank X varies.
	var changes []Ranks
	var left []int
	g := rand.New(rand.NewPCG(4, 4))
	for range 10 {
		changes, left = append(changes, Ranks{g.NormFloat64(), 0}), append(left, 500)
	}
	deviation := NewRankSpread(Ranks{}, changes, left, 1000).l[0] // standard deviation of X
	for _, c := range []struct{ rank, deviation, want float64 }{
		{20.3, 2, 4 + 1./12},
		{20.5, 0.05, 0},
		{20, 0.05, 0.25},      // rank 20 or 21, each with probability 0.5
		{20.99, 0.01, 0.1825}, // rank 21 with probability Φ(1/√2) = 0.76, else 22
	} {
		scaled := append([]Ranks(nil), changes...)
		for i := range scaled {
			scaled[i].X *= c.deviation / deviation
		}
		var values []measure.Replicate
		for _, v := range NewRankSpread(Ranks{c.rank, 90}, scaled, left, 1000).Shifts(RankSlope{Smaller: 1}) {
			values = append(values, measure.Replicate{Value: v, Left: 500})
		}
		low, high := Jackknife(0, 1000, values)
		half := 2.262 * math.Sqrt(c.want) // 97.5 % quantile of Student's t with nine degrees of freedom
		if got := (high - low) / 2; math.Abs(got-half) > 0.03*half+0.02 {
			t.Errorf("rank %v with deviation %v: half width = %v, want %v", c.rank, c.deviation, got, half)
		}
	}
	constant := RankSpread{ranks: Ranks{20, 20}, coord: make([][2]float64, 10)}
	for _, v := range constant.Shifts(RankSlope{1, 1}) {
		if v != 0 {
			t.Errorf("shift without a spread = %v, want 0", v)
		}
	}
}

// TestNewRankSlope checks that the slope of a score that is linear in the smaller and the larger
// rank consists of its coefficients. NearbyRanks returns the two pairs of ranks near p and q at
// which the score is needed; p + 9 is the largest p that is possible.
func TestNewRankSlope(t *testing.T) {
	t.Parallel()
	score := func(p, q int) float64 { return 2*float64(min(p, q)) - 3*float64(max(p, q)) }
	for _, c := range [][2]int{{7, 9}, {9, 7}, {8, 8}, {300, 301}, {301, 300}, {300, 300}} {
		p, q := c[0], c[1]
		var nearby [2]float64
		for i, k := range NearbyRanks(p, q, p+9) {
			nearby[i] = score(k[0], k[1])
		}
		if s := NewRankSlope(p, q, p+9, score(p, q), nearby); s != (RankSlope{2, -3}) {
			t.Errorf("slope at ranks %d and %d = %v, want {2 -3}", p, q, s)
		}
	}
	if s := NewRankSlope(1, 1, 1, 5, [2]float64{5, 5}); s != (RankSlope{}) {
		t.Errorf("slope without nearby ranks = %v, want 0", s)
	}
}
