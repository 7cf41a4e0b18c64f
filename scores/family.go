package scores

import (
	"cmp"
	"math"
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// Holm returns p-values after Holm's correction (1979) for a family of tests: if there is no effect
// in any of them, the probability that some adjusted p is below a level is at most that level,
// however the tests depend on each other. NaN is no test.
func Holm(p []float64) []float64 {
	out := slices.Repeat([]float64{math.NaN()}, len(p))
	var order []int
	for i, v := range p {
		if !math.IsNaN(v) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	largest := 0.0
	for k, i := range order {
		largest = max(largest, min(1, p[i]*float64(len(order)-k)))
		out[i] = largest
	}
	return out
}

// Level is the accepted probability that a family of claims has a false one.
const Level = 0.05

// smallestP replaces smaller p-values of rows, where 0 is no p-value.
const smallestP = 1e-300

// adjustRows sets the adjusted p-values of rows.
func adjustRows(rows []Row) {
	p := make([]float64, len(rows))
	for i := range rows {
		if p[i] = rows[i].P; p[i] == 0 {
			p[i] = math.NaN()
		}
	}
	for i, v := range Holm(p) {
		if !math.IsNaN(v) {
			rows[i].PAdjusted = v
		}
	}
}

// unknownFreedom is the degrees of freedom of an interval without replicates: those of a jackknife
// of measure.MaxGroups groups.
const unknownFreedom = measure.MaxGroups - 1

// freedomOf returns the degrees of freedom of the interval of a score.
func freedomOf(s measure.Score) float64 {
	groups := float64(len(s.Replicates) - 1)
	switch {
	case groups < 1 && s.Freedom > 0:
		return s.Freedom
	case groups < 1:
		return unknownFreedom
	case s.Spread > 0:
		of := math.Sqrt(max(0, math.Pow((s.High-s.Low)/2, 2)-s.Spread*s.Spread)) // of the replicates
		_, freedom := resample.Combine([]float64{of, s.Spread}, []float64{groups, s.Freedom})
		return freedom
	}
	return groups
}

// chanceP returns the p-value of the hypothesis that a score is its null, from its interval; 0
// without one of both.
func chanceP(s *measure.Score) float64 {
	half := s.High - s.Value // on the side of the null
	if s.Null < s.Value {
		half = s.Value - s.Low
	}
	p := resample.PValue(s.Null-s.Value, half, freedomOf(*s))
	switch {
	case math.IsNaN(p):
		return 0
	case !beyondRounding(s.Value, s.Null):
		return 1
	}
	return max(p, smallestP)
}

// Adjust sets the adjusted p-values of differences, as one family of claims.
func Adjust(family []Difference) {
	p := make([]float64, len(family))
	for i, d := range family {
		p[i] = d.P
	}
	for i, v := range Holm(p) {
		family[i].Adjusted = v
	}
}
