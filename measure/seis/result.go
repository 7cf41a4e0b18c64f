package seis

// A result is the two scores of a layer.
type result struct {
	equivariance, invariance float64
	ties                     bool // see haveTies
}

// resultOf computes the two scores from the moments (sums of products) of coordinates in the
// principal subspaces of the clean and of the transformed feature maps: equations 4 and 5 of the
// SEIS paper (see the package comment). rho are the canonical correlations, and cos the absolute
// cosines between the two canonical vectors of each.
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

// haveTies reports whether more than one in twenty canonical correlations, given in descending
// order, equal the one before up to rounding. Canonical vectors of equal correlations are not
// unique, so invariance is not either. Successive ones of r correlations of real data lie about
// 1 / r apart; those of a flip, a translation by whole positions or an identity are all 1 but for
// rounding. Correlations near 0 are not counted.
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
