package seis

// A result is the two scores of a layer.
type result struct {
	equivariance, invariance float64
	ties                     bool // see haveTies
}

// resultOf computes the two scores from moments: equations 4 and 5 of the SEIS paper (package
// comment).
func resultOf(m moments) (result, error) {
	rho, cos, err := m.correlations()
	if err != nil {
		return result{}, err
	}
	var s result
	r := float64(len(rho))
	for i := range rho {
		s.equivariance += rho[i] / r
		s.invariance += rho[i] * cos[i] / r
	}
	s.ties = haveTies(rho)
	return s, nil
}

// haveTies reports whether over one in twenty of the descending canonical correlations ties with
// the one before. Their canonical vectors are not unique, so invariance is not either. Real data
// have gaps of about 1 / r; those of a flip, a shift by whole positions or an identity are 1 but
// for rounding. Those near 0 are not counted.
func haveTies(rho []float64) bool {
	const tolerance, smallest = 1e-6, 0.01
	tied := 0
	for i := 1; i < len(rho); i++ {
		if rho[i] > smallest && rho[i-1]-rho[i] < tolerance {
			tied++
		}
	}
	return tied > len(rho)/20
}
