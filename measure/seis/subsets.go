package seis

import (
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/noether-ml/noether/internal/linalg"
)

// subsets accumulates the scatters of several sets of observations, such as halves. A set is a
// union of groups, or all without some. Coordinates are in the principal subspaces of all. Only
// take may be called concurrently.
type subsets struct {
	bases *bases                   // of the principal subspaces of x and y
	all   *linalg.Scatter[float64] // of all observations: x, then y
	sums  []coordinateSum          // of each set
}

// A coordinateSum holds scatters of n observations about the mean of all, and sums of deviations
// from it.
type coordinateSum struct {
	n      int
	xx, yy []float32      // scatters: upper triangles, row after row
	xy     blas32.General // scatter of x with y
	x, y   []float32      // sums of deviations
}

// newSubsets returns so many empty sets; all is the scatter of the bases.
func (f *bases) newSubsets(all *linalg.Scatter[float64], sets int) *subsets {
	h := &subsets{bases: f, all: all, sums: make([]coordinateSum, sets)}
	p, q := f.x.K, f.y.K // dimensions of the subspaces
	for i := range h.sums {
		h.sums[i] = coordinateSum{
			xx: make([]float32, p*(p+1)/2), yy: make([]float32, q*(q+1)/2),
			xy: blas32.General{Rows: p, Cols: q, Stride: q, Data: make([]float32, p*q)},
			x:  make([]float32, p), y: make([]float32, q),
		}
	}
	return h
}

// addAllObservations adds all observations to an empty set, with their coordinates' scatters,
// diagonal for x and y (principal axes).
func (h *subsets) addAllObservations(set int, c coordinates) {
	s := &h.sums[set]
	s.n = h.all.N
	triangle := s.xx
	for i, v := range c.xx[:h.bases.x.K] {
		triangle[0] = float32(v)
		triangle = triangle[h.bases.x.K-i:]
	}
	triangle = s.yy
	for i, v := range c.yy[:h.bases.y.K] {
		triangle[0] = float32(v)
		triangle = triangle[h.bases.y.K-i:]
	}
	for i := range s.xy.Rows {
		narrow(rowOf(s.xy, i), c.xy.RawRowView(i)[:s.xy.Cols])
	}
}

// add adds a group's scatter part where sign is 1 and removes it where it is -1. It returns by how
// much the fractional ranks of x and y would grow, to first order, if the group counted twice. Over
// all groups this sums to zero.
func (h *subsets) add(part *linalg.Scatter[float32], sign func(set int) int) (x, y float64) {
	f, m := h.bases, float32(part.N)
	delta := make([]float32, h.all.P)
	for i := range delta {
		delta[i] = float32(part.Mean[i] - h.all.Mean[i])
	}
	d := h.all.P / 2 // number of positions: of variables of x, and of y
	dx, dy := project(f.leadingX(), delta[:d]), project(f.leadingY(), delta[d:])
	f.work.reset()
	// This depends on x alone, so accumulators of other transformations share it.
	xx := f.clean.group(part, func() []float32 {
		s := f.reduceSquare(part, 0, f.leadingX())
		addOuter(s, m, dx, dx)
		return triangleOf(s)
	})
	yy := f.reduceSquare(part, d, f.leadingY())
	addOuter(yy, m, dy, dy)
	xy := f.reduceBetween(part)
	addOuter(xy, m, dx, dy)
	for i := range h.sums {
		if s, sign := &h.sums[i], sign(i); sign != 0 {
			s.n += sign * part.N
			factor := float32(sign)
			addAll(s.xx, xx, factor)
			addTriangle(s.yy, yy, factor)
			addAll(s.xy.Data, xy.Data, factor)
			addAll(s.x, dx, factor*m)
			addAll(s.y, dy, factor*m)
		}
	}
	tx, ty := squaresAbout(part, delta)
	return f.x.Influence(diagonalOfTriangle(xx, len(dx)), tx), f.y.Influence(diagonalOf(yy), ty)
}

// take returns the scatters of set i about its mean, and its observations. It releases the set's
// memory: call it once, last. The result is valid until work is reused. Goroutines need workspaces
// of their own.
func (h *subsets) take(i int, work *workspace) (p singleMoments, n int) {
	s := h.sums[i]
	h.sums[i] = coordinateSum{}
	f := h.bases
	work.reset()
	xx, yy := squareOf(s.xx, work.matrix(f.x.K, f.x.K)), squareOf(s.yy, work.matrix(f.y.K, f.y.K))
	if s.n > 0 {
		addOuter(xx, -1/float32(s.n), s.x, s.x)
		addOuter(yy, -1/float32(s.n), s.y, s.y)
		addOuter(s.xy, -1/float32(s.n), s.x, s.y)
	}
	clearRounding(xx, f.x.Values)
	clearRounding(yy, f.y.Values)
	return singleMoments{xx: xx, yy: yy, xy: s.xy, overlap: submatrix(f.overlapSingle, 0, f.x.K, 0, f.y.K), work: work}, s.n
}

// clearRounding zeroes diagonal values that are rounding compared with all's.
func clearRounding(s blas32.General, all []float64) {
	const floor = 1e-6
	for i := range s.Rows {
		if v := &s.Data[i*(s.Stride+1)]; float64(*v) < floor*all[i] {
			*v = 0
		}
	}
}

// squaresAbout returns a part's squared deviations, of x and of y, from its mean minus delta.
func squaresAbout(part *linalg.Scatter[float32], delta []float32) (x, y float64) {
	for i, v := range part.Diagonal() {
		v := float64(v) + float64(part.N)*float64(delta[i])*float64(delta[i])
		if i < len(delta)/2 {
			x += v
		} else {
			y += v
		}
	}
	return x, y
}

func diagonalOf(s blas32.General) []float64 {
	out := make([]float64, s.Rows)
	for i := range out {
		out[i] = float64(s.Data[i*(s.Stride+1)])
	}
	return out
}

func triangleOf(m blas32.General) []float32 {
	out := make([]float32, 0, m.Rows*(m.Rows+1)/2)
	for i := range m.Rows {
		out = append(out, rowOf(m, i)[i:]...)
	}
	return out
}

// diagonalOfTriangle is diagonalOf for a packed n x n upper triangle.
func diagonalOfTriangle(triangle []float32, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(triangle[0])
		triangle = triangle[n-i:]
	}
	return out
}

func addOuter(s blas32.General, factor float32, a, b []float32) {
	for i := range s.Rows {
		addAll(rowOf(s, i), b, factor*a[i])
	}
}

// addTriangle adds factor times the upper triangle of m to sum, a packed triangle: row after row.
func addTriangle(sum []float32, m blas32.General, factor float32) {
	for i := range m.Rows {
		row := rowOf(m, i)[i:]
		addAll(sum[:len(row)], row, factor)
		sum = sum[len(row):]
	}
}

// squareOf unpacks a triangle into m, zeros below the diagonal.
func squareOf(triangle []float32, m blas32.General) blas32.General {
	for i := range m.Rows {
		row := rowOf(m, i)
		clear(row[:i])
		triangle = triangle[copy(row[i:], triangle):]
	}
	return m
}

func addAll(dst, src []float32, factor float32) {
	n := len(dst)
	blas32.Axpy(factor, blas32.Vector{N: n, Inc: 1, Data: src[:n]}, blas32.Vector{N: n, Inc: 1, Data: dst})
}

// submatrix shares the memory of the rows and columns.
func submatrix(m blas32.General, top, bottom, left, right int) blas32.General {
	return blas32.General{Rows: bottom - top, Cols: right - left, Stride: m.Stride, Data: m.Data[top*m.Stride+left:]}
}
