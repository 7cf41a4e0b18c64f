package similarity

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"
)

// rsa (representational similarity analysis) returns the Spearman correlation of the
// dissimilarities of all pairs of samples in two representations, and its jackknife replicates,
// each without one group of samples. It computes the replicates to first order. The test compares
// them with exact ones, for which the dissimilarities of the remaining pairs are ranked again: the
// errors are small beside the standard deviation of the replicates, with and without ties.
func TestRSAReplicates(t *testing.T) {
	t.Parallel()
	const n, groups = 200, 20
	var cuts []int // group g is the samples from cuts[g] to cuts[g+1]-1
	for g := range groups + 1 {
		cuts = append(cuts, g*n/groups)
	}
	// levels is the number of values that dissimilarities have.
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
				for dissimilarities, values := range map[*[]float64][]float64{&a: x, &b: y} {
					d := math.Abs(values[i] - values[j])
					if !math.IsInf(levels, 1) {
						d = math.Floor(min(2*d, levels-1))
					}
					*dissimilarities = append(*dissimilarities, d)
				}
			}
		}
		// ranks returns doubled ranks, and meanRanks ranks. Ties share their mean rank.
		e := rsa(ranks(a), ranks(b), n, cuts)
		if want := stat.Correlation(meanRanks(a), meanRanks(b), nil); math.Abs(e.value-want) > 1e-12 {
			t.Errorf("%s: rsa %v, want %v", name, e.value, want)
		}
		var got, want []float64
		for group := range groups {
			remains := func(i int) bool { return i < cuts[group] || i >= cuts[group+1] }
			var ra, rb []float64
			pair := 0
			for i := range n {
				for j := i + 1; j < n; j++ {
					if remains(i) && remains(j) {
						ra, rb = append(ra, a[pair]), append(rb, b[pair])
					}
					pair++
				}
			}
			got = append(got, e.replicates[group].Value)
			want = append(want, stat.Correlation(meanRanks(ra), meanRanks(rb), nil))
		}
		spread := stat.StdDev(want, nil)
		for i := range got {
			if d := math.Abs(got[i] - want[i]); d > 0.1*spread {
				t.Errorf("%s: without group %d: %v, want %v; the difference is %.2f standard deviations of the replicates", name, i, got[i], want[i], d/spread)
			}
		}
		if ratio := stat.StdDev(got, nil) / spread; math.Abs(ratio-1) > 0.05 {
			t.Errorf("%s: the standard deviation of the replicates is %.3f times that of the exact ones", name, ratio)
		}
	}
	// All ten pairs of five samples have the same dissimilarity in one representation. There are no
	// groups.
	if e := rsa(ranks(slices.Repeat([]float64{1}, 10)), ranks([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), 5, nil); !math.IsNaN(e.value) {
		t.Errorf("rsa of equal dissimilarities is %v, want NaN", e.value)
	}
}
