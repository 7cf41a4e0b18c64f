package firing

import (
	"math"
	"slices"
)

// rankOf returns k = ceil(rate N) for n inputs. The threshold of a unit is its k-th largest value.
func rankOf(n int, rate float64) int {
	k := int(math.Ceil(rate*float64(n) - 1e-9)) // 0.01 x 700 is 7, whatever its rounding
	return min(max(k, 1), n)
}

// Threshold returns the largest q that at least ceil(rate n) of n values reach, and the share of
// values that reach it: the global firing rate, ties included. It sorts a copy; a
// ThresholdEstimator does the same for many units without keeping their values.
func Threshold(values []float32, rate float64) (q float32, global float64) {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	n := len(sorted)
	q = sorted[n-rankOf(n, rate)]
	return q, firingRate(values, q)
}

// firingRate returns the share of values that are at least q: the firing rate.
func firingRate(values []float32, q float32) float64 {
	count := 0
	for _, v := range values {
		if v >= q {
			count++
		}
	}
	return float64(count) / float64(len(values))
}

// Score returns S = L / G. G is above 0, since a unit fires at the input that defines its
// threshold.
func Score(local, global float64) float64 { return local / global }

// NetworkScore returns Inv_p, the mean of the top proportion p of scores (of at least one). It
// returns NaN without scores.
func NetworkScore(scores []float64, p float64) float64 {
	top := slices.Clone(scores)
	slices.Sort(top)
	slices.Reverse(top)
	return average(top[:share(len(top), p)])
}

// share returns round(p n), at least 1: the number of units in the top proportion p.
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
