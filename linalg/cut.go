package linalg

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
)

// An end is where a subspace is cut off with other observations: coordinates before at stay, and those from at on are
// replaced by coordinates in the columns of turn.
type end struct {
	at, kept int
	turn     *mat.Dense // (K + margin - at) square; its first columns are kept
}

// partNoise is noiseFloor for a difference of moments in float32. It is a part of the largest eigenvalue of all
// observations: without some of them there may be nothing but rounding.
const partNoise = 1e-6

var errNoVariance = errors.New("linalg: too little variance is left in the subspace")

// end finds the end of a subspace for the scatter xx of coordinates in its basis, given the variance of the whole
// space.
func (s Subspace) end(xx *mat.SymDense, total float64) (end, error) {
	n := len(s.Values)
	at := max(0, s.K-margin(s.K))
	floor := partNoise * s.Values[0]
	var before float64
	for i := range at {
		if xx.At(i, i) <= floor {
			return end{}, errNoVariance
		}
		before += xx.At(i, i)
	}
	last := make([]float64, (n-at)*(n-at))
	for i := at; i < n; i++ {
		for j := i; j < n; j++ {
			last[(i-at)*(n-at)+j-at] = xx.At(i, j)
		}
	}
	values, err := eigen(last, n-at)
	if err != nil {
		return end{}, err
	}
	values = reversed(values)
	e := end{at: at, turn: largest(last, n-at, n-at)}
	for j, lost := range repulsion(xx, e, values) {
		values[j] -= lost
		before += lost
	}
	values = values[:countAbove(values, floor)]
	e.kept = countLeading(values, s.Fraction*total-before)
	if at+e.kept == 0 {
		return end{}, errNoVariance
	}
	return e, nil
}

// repulsion is what the eigenvalues of the last coordinates lose to the first, with which they are correlated, by
// perturbation theory to second order: sum_i c_ij^2 / (xx_ii - values_j), c_ij being the scatter of coordinate i with
// the j-th turned one. It is small, but a subspace may gain or lose a dimension by it.
func repulsion(xx *mat.SymDense, e end, values []float64) []float64 {
	lost := make([]float64, len(values))
	if e.at == 0 {
		return lost
	}
	n := xx.SymmetricDim()
	var c mat.Dense
	c.Mul(mat.DenseCopyOf(xx).Slice(0, e.at, e.at, n), e.turn)
	for i := range e.at {
		for j, v := range c.RawRowView(i) {
			if gap := xx.At(i, i) - values[j]; gap > 0 {
				lost[j] += min(v*v/gap, math.Abs(v)) // |v| bounds what two eigenvalues of equal size lose
			}
		}
	}
	return lost
}

// cut applies the ends of both subspaces to the scatters of their coordinates.
func (p Pair) cut(x, y end) Pair {
	square := func(s *mat.SymDense, e end) *mat.SymDense {
		t := turnRows(turnColumns(mat.DenseCopyOf(s), e), e)
		n, _ := t.Dims()
		return mat.NewSymDense(n, t.RawMatrix().Data)
	}
	return Pair{
		XX:      square(p.XX, x),
		YY:      square(p.YY, y),
		XY:      turnRows(turnColumns(p.XY, y), x),
		Overlap: turnRows(turnColumns(p.Overlap, y), x),
	}
}

// columns are the coordinates that are kept.
func (e end) columns() mat.Matrix {
	rows, _ := e.turn.Dims()
	return e.turn.Slice(0, rows, 0, e.kept)
}

// turnColumns replaces the last columns of m.
func turnColumns(m *mat.Dense, e end) *mat.Dense {
	rows, cols := m.Dims()
	out := mat.NewDense(rows, e.at+e.kept, nil)
	for i := range rows {
		copy(out.RawRowView(i)[:e.at], m.RawRowView(i))
	}
	if e.kept > 0 {
		out.Slice(0, rows, e.at, e.at+e.kept).(*mat.Dense).Mul(m.Slice(0, rows, e.at, cols), e.columns())
	}
	return out
}

// turnRows replaces the last rows of m.
func turnRows(m *mat.Dense, e end) *mat.Dense {
	rows, cols := m.Dims()
	out := mat.NewDense(e.at+e.kept, cols, nil)
	for i := range e.at {
		copy(out.RawRowView(i), m.RawRowView(i))
	}
	if e.kept > 0 {
		out.Slice(e.at, e.at+e.kept, 0, cols).(*mat.Dense).Mul(e.columns().T(), m.Slice(e.at, rows, 0, cols))
	}
	return out
}
