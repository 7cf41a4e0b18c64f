package resample

import "math"

// Wilson returns the 95 % score interval for a proportion p of n trials (Wilson 1927). It is
// contained in [0, 1], with coverage near 95 % for p near 0 and 1, too. Both bounds are NaN for n =
// 0.
func Wilson(p float64, n int) (low, high float64) {
	return wilson(p, n, 1.959963984540054) // the 97.5 % quantile of the normal distribution
}

func wilson(p float64, n int, z float64) (low, high float64) {
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	m := float64(n)
	centre := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	low, high = max(0, centre-half), min(1, centre+half)
	switch p { // exactly, without what rounding leaves
	case 0:
		low = 0
	case 1:
		high = 1
	}
	return low, high
}
