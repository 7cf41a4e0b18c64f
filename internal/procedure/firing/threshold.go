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

// Threshold returns the ceil(rate n)-th largest of n values, at least one, and the fraction that is
// at least as large, which exceeds rate if values tie. It sorts a copy.
func Threshold(values []float32, rate float64) (q float32, global float64) {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	n := len(sorted)
	q = sorted[n-rankOf(n, rate)]
	return q, firingRate(values, q)
}

// firingRate returns the fraction of values that are at least q.
func firingRate(values []float32, q float32) float64 {
	count := 0
	for _, v := range values {
		if v >= q {
			count++
		}
	}
	return float64(count) / float64(len(values))
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
