package linalg

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// An end is where a subspace is cut off with other observations: coordinates before at stay, and those from at on are
// replaced by turned ones, which are not correlated with each other.
type end struct {
	at, kept int
	turn     blas32.General // (K + margin - at) square: the axes of the turned coordinates, the first of which are kept, as rows
	values   []float32      // the scatter of each turned coordinate, descending
	beside   blas32.General // the scatter of the coordinates that stay with the turned ones
}

// partNoise is noiseFloor for a difference of moments in float32. It is a part of the largest eigenvalue of all
// observations: without some of them there may be nothing but rounding.
const partNoise = 1e-6

var errNoVariance = errors.New("linalg: too little variance is left in the subspace")

// end finds the end of a subspace for the scatter xx of coordinates in its basis, given the variance of the whole
// space.
func (s Subspace) end(xx blas32.General, total float64, work *workspace) (end, error) {
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
	e := end{at: at, turn: work.matrix(n-at, n-at)}
	for i := range n - at {
		copy(rowOf(e.turn, i)[i:], rowOf(xx, at+i)[at+i:])
	}
	var ok bool
	if e.values, ok = lapack32.eigen(e.turn.Data, n-at, work); !ok {
		return end{}, ErrNotConverged
	}
	slices.Reverse(e.values)
	reverseRows(e.turn)
	if at > 0 {
		e.beside = work.matrix(at, n-at)
		blas32.Gemm(blas.NoTrans, blas.Trans, 1, part(xx, 0, at, at, n), e.turn, 0, e.beside)
	}
	values := make([]float64, len(e.values))
	for i, v := range e.values {
		values[i] = float64(v)
	}
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

// reverseRows puts the last row first.
func reverseRows(m blas32.General) {
	for i, j := 0, m.Rows-1; i < j; i, j = i+1, j-1 {
		a, b := rowOf(m, i), rowOf(m, j)
		for k := range a {
			a[k], b[k] = b[k], a[k]
		}
	}
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
	outside := total
	for i := range n {
		outside -= float64(xx.Data[i*xx.Stride+i])
	}
	last := len(values) / 2
	for i := range e.at {
		own := float64(xx.Data[i*xx.Stride+i])
		var square, variance float64
		for j, v := range rowOf(e.beside, i) {
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

// cut applies the ends of both subspaces to the scatters of their coordinates, in their place.
func (p PairSingle) cut(x, y end) PairSingle {
	turn := func(m blas32.General) blas32.General { return x.turnRows(y.turnColumns(m, p.work), p.work) }
	return PairSingle{
		XX:      x.turnTriangle(p.XX),
		YY:      y.turnTriangle(p.YY),
		XY:      turn(p.XY),
		Overlap: turn(p.work.copyOf(p.Overlap)),
		work:    p.work,
	}
}

// turnTriangle replaces the last rows and columns of the scatter that the end was found in.
func (e end) turnTriangle(m blas32.General) blas32.General {
	for i := range e.at {
		copy(rowOf(m, i)[e.at:], rowOf(e.beside, i)[:e.kept])
	}
	for i := range e.kept {
		row := rowOf(m, e.at+i)[e.at+i : e.at+e.kept]
		clear(row)
		row[0] = e.values[i]
	}
	return part(m, 0, e.at+e.kept, 0, e.at+e.kept)
}

// turnColumns replaces the last columns of m.
func (e end) turnColumns(m blas32.General, work *workspace) blas32.General {
	if e.kept > 0 {
		defer work.reset(work.given)
		turned := work.matrix(m.Rows, e.kept)
		blas32.Gemm(blas.NoTrans, blas.Trans, 1, part(m, 0, m.Rows, e.at, m.Cols), part(e.turn, 0, e.kept, 0, e.turn.Cols), 0, turned)
		for i := range m.Rows {
			copy(rowOf(m, i)[e.at:], rowOf(turned, i))
		}
	}
	return part(m, 0, m.Rows, 0, e.at+e.kept)
}

// turnRows replaces the last rows of m.
func (e end) turnRows(m blas32.General, work *workspace) blas32.General {
	if e.kept > 0 {
		defer work.reset(work.given)
		turned := work.matrix(e.kept, m.Cols)
		blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, part(e.turn, 0, e.kept, 0, e.turn.Cols), part(m, e.at, m.Rows, 0, m.Cols), 0, turned)
		for i := range e.kept {
			copy(rowOf(m, e.at+i), rowOf(turned, i))
		}
	}
	return part(m, 0, e.at+e.kept, 0, m.Cols)
}
