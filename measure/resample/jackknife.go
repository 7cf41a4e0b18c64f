package resample

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/noether-ml/noether/measure"
)

// Jackknife returns a 95 % interval around full from replicates that leave out a group of samples,
// or half of the samples, by the delete-m_j jackknife for groups of unequal size (Busing, Meijer
// and van der Leeden 1999, equations 6 to 8):
//
//	h_j = n / m_j,  pseudo_j = h_j full - (h_j - 1) replicate_j,
//	variance = 1/g sum_j (pseudo_j - mean pseudo)^2 / (h_j - 1),
//
// with n observations in all, of which replicate j leaves out m_j, and Student's t with g - 1
// degrees of freedom. The interval is centred on full, not on the bias-corrected mean. Both bounds
// are NaN with fewer than two replicates.
func Jackknife(full float64, n int, replicates []measure.Replicate) (low, high float64) {
	var kept []measure.Replicate
	for _, r := range replicates {
		if r.Left > 0 && r.Left < n && !math.IsNaN(r.Value) {
			kept = append(kept, r)
		}
	}
	g := float64(len(kept))
	if len(kept) < 2 || math.IsNaN(full) {
		return math.NaN(), math.NaN()
	}
	h := func(r measure.Replicate) float64 { return float64(n) / float64(r.Left) }
	pseudo := func(r measure.Replicate) float64 { return h(r)*full - (h(r)-1)*r.Value }
	var mean float64
	for _, r := range kept {
		mean += pseudo(r) / g
	}
	var variance float64
	for _, r := range kept {
		d := pseudo(r) - mean
		variance += d * d / (h(r) - 1) / g
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: g - 1}.Quantile(0.975)
	half := t * math.Sqrt(variance)
	return full - half, full + half
}
