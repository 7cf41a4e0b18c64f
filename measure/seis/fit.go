package seis

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/linalg"
)

// A fit is the leading subspaces of both views.
type fit struct {
	u, v    linalg.Subspace
	overlap *mat.Dense // Uᵀ U', k x k'; nil where the rank is 0
}

// fit finds the leading subspaces.
func (a *accumulator) fit() (f fit, err error) {
	d := a.plane.positions()
	for i, v := range a.total.Variances() {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return f, fmt.Errorf("seis: activations at position %d are so large that their squares overflow float32", i%d)
		}
	}
	if f.u, err = linalg.Leading(a.total.Square(0, d), d, a.measure.settings.Variance); err != nil {
		return f, fmt.Errorf("seis, clean view: %w", err)
	}
	if f.v, err = linalg.Leading(a.total.Square(d, 2*d), d, a.measure.settings.Variance); err != nil {
		return f, fmt.Errorf("seis, moved view: %w", err)
	}
	if f.rank() > 0 {
		f.overlap = new(mat.Dense)
		f.overlap.Mul(f.u.Basis.T(), f.v.Basis)
	}
	return f, nil
}

// rank is the number of canonical correlations.
func (f *fit) rank() int { return min(f.u.K(), f.v.K()) }

// pair is the scatters of the coordinates in the subspaces, given the d x d scatter between positions before and after.
func (f *fit) pair(cross []float64) linalg.Pair {
	d, _ := f.u.Basis.Dims()
	var half, xy mat.Dense
	half.Mul(mat.NewDense(d, d, cross), f.v.Basis)
	xy.Mul(f.u.Basis.T(), &half)
	return linalg.Pair{XX: diagonal(f.u.Values), YY: diagonal(f.v.Values), XY: &xy}
}

func diagonal(values []float64) *mat.SymDense {
	s := mat.NewSymDense(len(values), nil)
	for i, v := range values {
		s.SetSym(i, i, v)
	}
	return s
}

// A result is the two scores.
type result struct {
	equivariance, invariance float64
	ties                     bool
}

// scores computes the two scores from the scatters of coordinates in the subspaces: equations 4 and 5 of the paper.
func (f *fit) scores(p linalg.Pair) (result, error) {
	cca, err := p.Canonical()
	if err != nil {
		return result{}, err
	}
	var s result
	r := float64(len(cca.Rho))
	for i, cos := range cca.Cosines(f.overlap) {
		rho := cca.Rho[i]
		s.equivariance += rho / r
		s.invariance += rho * cos / r
	}
	s.ties = ties(cca.Rho)
	return s, nil
}

// ties says whether canonical correlations, descending, tie more often than rounding would have it. Neighbours of real data lie
// about 1 / r apart; those of a flip, a translation by whole positions or an identity are all 1 but for rounding.
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
