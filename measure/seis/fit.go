package seis

import (
	"fmt"
	"math"

	"github.com/noether-ml/noether/linalg"
)

// subspaces finds the leading subspaces of both views.
func (a *accumulator) subspaces() (u, v linalg.Subspace, err error) {
	d := a.plane.positions()
	for i, v := range a.total.Variances() {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return u, linalg.Subspace{}, fmt.Errorf("seis: activations at position %d are so large that their squares overflow float32", i%d)
		}
	}
	if u, err = linalg.Leading(a.total.Square(0, d), d, a.measure.settings.Variance); err != nil {
		return u, v, fmt.Errorf("seis, clean view: %w", err)
	}
	if v, err = linalg.Leading(a.total.Square(d, 2*d), d, a.measure.settings.Variance); err != nil {
		return u, v, fmt.Errorf("seis, moved view: %w", err)
	}
	if a.groups.len() == 0 {
		return u.Bare(), v.Bare(), nil
	}
	return u, v, nil
}

// A result is the two scores.
type result struct {
	equivariance, invariance float64
	ties                     bool
}

// A pair is the scatters of coordinates in both subspaces: a linalg.Pair of any kind.
type pair interface {
	Correlations() (rho, cos []float64, err error)
}

// scoresOfPair computes the two scores from the scatters of coordinates in the subspaces: equations 4 and 5 of the
// paper.
func scoresOfPair(p pair) (result, error) {
	rho, cos, err := p.Correlations()
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

// ties says whether canonical correlations, descending, tie more often than rounding would have it. Neighbours of
// real data lie about 1 / r apart; those of a flip, a translation by whole positions or an identity are all 1 but for
// rounding.
func ties(rho []float64) bool {
	const resolution, counts, share = 1e-6, 0.01, 20
	tied := 0
	for i := 1; i < len(rho); i++ {
		if rho[i] > counts && rho[i-1]-rho[i] < resolution {
			tied++
		}
	}
	return tied > len(rho)/share
}
