package linalg

import (
	"errors"

	"gonum.org/v1/gonum/mat"
)

// An end is where a subspace is cut off with other observations: coordinates before at stay, and those from at on are replaced by
// coordinates in the columns of turn.
type end struct {
	at, kept int
	turn     *mat.Dense // (K + margin - at) x kept; nil where kept is 0
}

// partNoise is noiseFloor for a difference of moments in float32. It is a part of the largest eigenvalue of all observations: without some of
// them there may be nothing but rounding.
const partNoise = 1e-6

var errNoVariance = errors.New("linalg: too little variance is left in the subspace")

// end finds the end of a subspace for the scatter xx of coordinates in its basis, given the variance of the whole space.
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
	values = values[:countAbove(values, floor)]
	e := end{at: at, kept: countLeading(values, s.Fraction*total-before)}
	switch {
	case e.kept > 0:
		e.turn = largest(last, n-at, e.kept)
	case at == 0:
		return end{}, errNoVariance
	}
	return e, nil
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

// turnColumns replaces the last columns of m.
func turnColumns(m *mat.Dense, e end) *mat.Dense {
	rows, cols := m.Dims()
	out := mat.NewDense(rows, e.at+e.kept, nil)
	for i := range rows {
		copy(out.RawRowView(i)[:e.at], m.RawRowView(i))
	}
	if e.kept > 0 {
		out.Slice(0, rows, e.at, e.at+e.kept).(*mat.Dense).Mul(m.Slice(0, rows, e.at, cols), e.turn)
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
		out.Slice(e.at, e.at+e.kept, 0, cols).(*mat.Dense).Mul(e.turn.T(), m.Slice(e.at, rows, 0, cols))
	}
	return out
}
