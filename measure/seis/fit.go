package seis

// A result is the two scores of a layer.
type result struct {
	equivariance, invariance float64
	ties                     bool // canonical correlations tie: see ties
}

// resultOf computes the two scores from the moments of coordinates in the subspaces: equations 4
// and 5 of the paper.
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
	s.ties = ties(rho)
	return s, nil
}

// ties reports whether more than one in twenty canonical correlations, given in descending order,
// tie with the one before. Successive correlations of real data lie about 1 / r apart; those of a
// flip, a translation by whole positions or an identity are all 1 but for rounding.
func ties(rho []float64) bool {
	const resolution, least, share = 1e-6, 0.01, 20
	tied := 0
	for i := 1; i < len(rho); i++ {
		if rho[i] > least && rho[i-1]-rho[i] < resolution {
			tied++
		}
	}
	return tied > len(rho)/share
}
