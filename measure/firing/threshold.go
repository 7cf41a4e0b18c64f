package firing

import (
	"math"
	"slices"
)

// Rank is k = ceil(rate N): the threshold is the k-th largest of n values.
func Rank(n int, rate float64) int {
	k := int(math.Ceil(rate*float64(n) - 1e-9)) // 0.01 x 700 is 7, whatever its rounding
	return min(max(k, 1), n)
}

// Threshold returns the largest q for which at least ceil(rate n) of n values are q or more, and the share that is: the global
// firing rate, ties included. It sorts a copy; a Global does the same for many units without keeping their values.
func Threshold(values []float32, rate float64) (q float32, global float64) {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	n := len(sorted)
	q = sorted[n-Rank(n, rate)]
	return q, Rate(values, q)
}

// Rate is the share of values that are q or more: the firing rate.
func Rate(values []float32, q float32) float64 {
	count := 0
	for _, v := range values {
		if v >= q {
			count++
		}
	}
	return float64(count) / float64(len(values))
}

// Score is S = L / G. G is above 0, since the inputs that define the threshold fire.
func Score(local, global float64) float64 { return local / global }

// Network is Inv_p: the mean of the top proportion p of scores, of at least one. It is NaN without scores.
func Network(scores []float64, p float64) float64 {
	top := slices.Clone(scores)
	slices.Sort(top)
	slices.Reverse(top)
	return average(top[:share(len(top), p)])
}

// share is how many of n units are the top proportion p: round(p n), one at least.
func share(n int, p float64) int {
	return min(max(int(math.Round(p*float64(n))), 1), n)
}

func average(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}
