package firing

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// rankOf returns k = ceil(rate n), from 1 to n. With the k-th largest of n values as threshold, a
// unit fires for about the fraction rate of the inputs.
func rankOf(n int, rate float64) int {
	k := int(math.Ceil(rate*float64(n) - 1e-9)) // in float64, 0.07 x 100 is a little more than 7
	return min(max(k, 1), n)
}

// Score returns S = L / G, the local firing rate divided by the global one. G is above 0, since a
// unit fires at the input that defines its threshold.
func Score(local, global float64) float64 { return local / global }

// NetworkScore returns Inv_p, the mean of the highest proportion p of scores, at least of one; NaN
// if there are none.
func NetworkScore(scores []float64, p float64) float64 {
	top := slices.Clone(scores)
	slices.Sort(top)
	slices.Reverse(top)
	return stat.Mean(top[:topCount(len(top), p)], nil)
}

// topCount returns round(p n), at least 1.
func topCount(n int, p float64) int {
	return min(max(int(math.Round(p*float64(n))), 1), n)
}
