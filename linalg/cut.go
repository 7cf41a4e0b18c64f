package linalg

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// An end is where a subspace is cut off with other observations: coordinates before at stay, and those from at on are
// replaced by coordinates in the columns of turn.
type end struct {
	at, kept int
	turn     blas32.General // (K + margin - at) square; its first columns are kept
}

// partNoise is noiseFloor for a difference of moments in float32. It is a part of the largest eigenvalue of all
// observations: without some of them there may be nothing but rounding.
const partNoise = 1e-6

var errNoVariance = errors.New("linalg: too little variance is left in the subspace")

// end finds the end of a subspace for the scatter xx of coordinates in its basis, given the variance of the whole
// space.
func (s Subspace) end(xx blas32.General, total float64) (end, error) {
	n := len(s.Values)
	at := max(0, s.K-margin(s.K))
	floor := partNoise * s.Values[0]
	var before float64
	for i := range at {
		v := float64(xx.Data[i*xx.Stride+i])
		if v <= floor {
			return end{}, errNoVariance
		}
		before += v
	}
	last := make([]float64, (n-at)*(n-at))
	for i := at; i < n; i++ {
		for j := i; j < n; j++ {
			last[(i-at)*(n-at)+j-at] = float64(xx.Data[i*xx.Stride+j])
		}
	}
	values, err := eigen(last, n-at)
	if err != nil {
		return end{}, err
	}
	values = reversed(values)
	e := end{at: at, turn: toSingle(largest(last, n-at, n-at))}
	lost, gained := repulsion(xx, e, values, total)
	for j := range values {
		values[j] -= lost[j]
		before += lost[j]
	}
	before += gained
	values = values[:countAbove(values, floor)]
	e.kept = countLeading(values, s.Fraction*total-before)
	if at+e.kept == 0 {
		return end{}, errNoVariance
	}
	return e, nil
}

// repulsion is what the eigenvalues of the last coordinates lose to the first, with which they are correlated, by
// perturbation theory to second order: sum_i c_ij^2 / (xx_ii - values_j), c_ij being the scatter of coordinate i with
// the j-th turned one; and what the first gain from the variance that lies outside of the basis, with which they are taken to be
// correlated as with the last of it: c_ij^2 in proportion to the variance of j. Both are small, but a subspace may gain or lose a
// dimension by them.
func repulsion(xx blas32.General, e end, values []float64, total float64) (lost []float64, gained float64) {
	lost = make([]float64, len(values))
	if e.at == 0 {
		return lost, 0
	}
	n := xx.Cols
	c := newSingle(e.at, n-e.at)
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, part(xx, 0, e.at, e.at, n), e.turn, 0, c)
	outside := total
	for i := range n {
		outside -= float64(xx.Data[i*xx.Stride+i])
	}
	last := len(values) / 2
	for i := range e.at {
		own := float64(xx.Data[i*xx.Stride+i])
		var square, variance float64
		for j, v := range rowOf(c, i) {
			v := float64(v)
			if gap := own - values[j]; gap > 0 {
				lost[j] += min(v*v/gap, math.Abs(v)) // |v| bounds what two eigenvalues of equal size lose
			}
			if j >= last {
				square += v * v
				variance += values[j]
			}
		}
		if square > 0 && variance > 0 && outside > 0 {
			gained += square / variance * outside / own
		}
	}
	return lost, gained
}

// part is the rows top to bottom and columns left to right of a matrix, none of them empty.
func part(m blas32.General, top, bottom, left, right int) blas32.General {
	return blas32.General{Rows: bottom - top, Cols: right - left, Stride: m.Stride, Data: m.Data[top*m.Stride+left:]}
}

// cut applies the ends of both subspaces to the scatters of their coordinates.
func (p PairSingle) cut(x, y end) PairSingle {
	return PairSingle{
		XX:      turnRows(turnColumns(p.XX, x), x),
		YY:      turnRows(turnColumns(p.YY, y), y),
		XY:      turnRows(turnColumns(p.XY, y), x),
		Overlap: turnRows(turnColumns(p.Overlap, y), x),
	}
}

// turnColumns replaces the last columns of m.
func turnColumns(m blas32.General, e end) blas32.General {
	out := newSingle(m.Rows, e.at+e.kept)
	for i := range m.Rows {
		copy(rowOf(out, i)[:e.at], rowOf(m, i))
	}
	if e.kept > 0 {
		blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, part(m, 0, m.Rows, e.at, m.Cols), part(e.turn, 0, e.turn.Rows, 0, e.kept), 0,
			part(out, 0, out.Rows, e.at, out.Cols))
	}
	return out
}

// turnRows replaces the last rows of m.
func turnRows(m blas32.General, e end) blas32.General {
	out := newSingle(e.at+e.kept, m.Cols)
	for i := range e.at {
		copy(rowOf(out, i), rowOf(m, i))
	}
	if e.kept > 0 {
		blas32.Gemm(blas.Trans, blas.NoTrans, 1, part(e.turn, 0, e.turn.Rows, 0, e.kept), part(m, e.at, m.Rows, 0, m.Cols), 0,
			part(out, e.at, out.Rows, 0, out.Cols))
	}
	return out
}
