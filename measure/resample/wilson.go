package resample

import "math"

// Wilson is the 95 % score interval of a proportion p seen in n trials (Wilson 1927): it stays
// within [0, 1] and holds its level near both ends, where p plus or minus two deviations does not.
func Wilson(p float64, n int) (low, high float64) {
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	const z = 1.959963984540054
	m := float64(n)
	centre := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, centre-half), min(1, centre+half)
}
