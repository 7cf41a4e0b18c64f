package similarity

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// Replicates of rsa are the correlations of the remaining pairs, ranked again, with and without
// ties. rsa computes them to first order: what it neglects is small beside the spread of the
// replicates.
func TestRSAReplicatesRankAgain(t *testing.T) {
	t.Parallel()
	const n, groups = 200, 20
	var cuts []int
	for g := range groups + 1 {
		cuts = append(cuts, g*n/groups)
	}
	for name, levels := range map[string]float64{"no ties": math.Inf(1), "12 values": 12} {
		g := rand.New(rand.NewPCG(26, 1))
		x, y := make([]float64, n), make([]float64, n)
		for i := range n {
			x[i] = g.ExpFloat64()
			y[i] = x[i] + 0.3*g.NormFloat64()
		}
		var a, b []float64
		for i := range n {
			for j := i + 1; j < n; j++ {
				for of, values := range map[*[]float64][]float64{&a: x, &b: y} {
					d := math.Abs(values[i] - values[j])
					if !math.IsInf(levels, 1) {
						d = math.Floor(min(2*d, levels-1))
					}
					*of = append(*of, d)
				}
			}
		}
		e := rsa(ranks(a), ranks(b), n, cuts)
		if want := stat.Correlation(meanRanks(a), meanRanks(b), nil); math.Abs(e.value-want) > 1e-12 {
			t.Errorf("%s: rsa %v, want %v", name, e.value, want)
		}
		var got, want []float64
		for group := range groups {
			left := func(i int) bool { return i < cuts[group] || i >= cuts[group+1] }
			var ra, rb []float64
			at := 0
			for i := range n {
				for j := i + 1; j < n; j++ {
					if left(i) && left(j) {
						ra, rb = append(ra, a[at]), append(rb, b[at])
					}
					at++
				}
			}
			got = append(got, e.replicates[group].Value)
			want = append(want, stat.Correlation(meanRanks(ra), meanRanks(rb), nil))
		}
		spread := stat.StdDev(want, nil)
		for i := range got {
			if d := math.Abs(got[i] - want[i]); d > 0.1*spread {
				t.Errorf("%s: without group %d: %v, want %v, which is %.2f of the deviation over groups", name, i, got[i], want[i], d/spread)
			}
		}
		if ratio := stat.StdDev(got, nil) / spread; math.Abs(ratio-1) > 0.05 {
			t.Errorf("%s: replicates vary %.3f times as much as they should", name, ratio)
		}
	}
	// All pairs tie in one representation.
	if e := rsa(ranks(slices.Repeat([]float64{1}, 10)), ranks([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), 5, nil); !math.IsNaN(e.value) {
		t.Errorf("rsa of equal dissimilarities is %v, want NaN", e.value)
	}
}
