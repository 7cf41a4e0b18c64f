package resample

import (
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/noether-ml/noether/measure"
)

// Jackknife returns a 95 % interval around full, the statistic of all n observations. Each
// replicate is the statistic without some of the observations: without one group, or without half
// of the groups. The method is the delete-m_j jackknife for groups of unequal size (Busing, Meijer
// and van der Leeden 1999, equations 6 to 8):
//
//	h_j = n / m_j,  pseudo_j = h_j full - (h_j - 1) replicate_j,
//	variance = 1/g sum_j (pseudo_j - mean pseudo)^2 / (h_j - 1),
//
// where g is the number of replicates, and replicate j leaves out m_j observations. The mean is not
// weighted; in the paper its weights are 1 / h_j, which are equal for groups of equal size. The
// half-width is the standard deviation times the 97.5 % quantile of Student's t with g - 1 degrees
// of freedom. The interval is centred on full, not on the bias-corrected mean. Replicates that are
// NaN, or that leave out no observation or all of them, are ignored. Both bounds are NaN if fewer
// than two replicates remain, or if full is NaN.
func Jackknife(full float64, n int, replicates []measure.Replicate) (low, high float64) {
	var valid []measure.Replicate
	for _, r := range replicates {
		if r.Left > 0 && r.Left < n && !math.IsNaN(r.Value) {
			valid = append(valid, r)
		}
	}
	g := float64(len(valid))
	if len(valid) < 2 || math.IsNaN(full) {
		return math.NaN(), math.NaN()
	}
	h := func(r measure.Replicate) float64 { return float64(n) / float64(r.Left) }
	pseudo := func(r measure.Replicate) float64 { return h(r)*full - (h(r)-1)*r.Value }
	var mean float64
	for _, r := range valid {
		mean += pseudo(r) / g
	}
	var variance float64
	for _, r := range valid {
		d := pseudo(r) - mean
		variance += d * d / (h(r) - 1) / g
	}
	half := studentQuantile(g-1) * math.Sqrt(variance)
	return full - half, full + half
}

// MeanWithoutGroups returns the jackknife replicates of the mean of the values in v, or nil if v
// has fewer than two values. Each replicate leaves out one of up to measure.MaxGroups groups of
// successive values. The values must be in random order.
func MeanWithoutGroups(v []float64) []measure.Replicate {
	groups := min(measure.MaxGroups, len(v))
	var out []measure.Replicate
	total := floats.Sum(v)
	for g := range groups {
		part := v[g*len(v)/groups : (g+1)*len(v)/groups]
		left := len(v) - len(part)
		if left == 0 {
			return nil
		}
		out = append(out, measure.Replicate{Value: (total - floats.Sum(part)) / float64(left), Left: len(part)})
	}
	return out
}
