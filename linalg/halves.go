package linalg

import (
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/noether-ml/noether/internal/huge"
)

// Halves gathers the scatters of coordinates in the subspaces that a Whole has of its observations, for several sets of them at once:
// halves of all observations, say. The observations come in parts, each of which belongs to some of the sets. The subspaces stay
// those of all observations. It is not for several goroutines at a time.
type Halves struct {
	whole Whole
	all   *Scatter[float64]
	sums  []coordinateSum
}

// A coordinateSum is the scatters of the coordinates of n observations about the mean of all, and the sum of their deviations from it.
type coordinateSum struct {
	n      int
	xx, yy []float32 // upper triangles, row by row without what is below them
	xy     blas32.General
	x, y   []float32
}

// Halves begins to gather a number of sets. all is the scatter that the whole was computed from.
func (w Whole) Halves(all *Scatter[float64], sets int) *Halves {
	h := &Halves{whole: w, all: all, sums: make([]coordinateSum, sets)}
	p, q := w.frame.x.K, w.frame.y.K
	for i := range h.sums {
		h.sums[i] = coordinateSum{
			xx: huge.Make[float32](p * (p + 1) / 2), yy: huge.Make[float32](q * (q + 1) / 2),
			xy: blas32.General{Rows: p, Cols: q, Stride: q, Data: huge.Make[float32](p * q)},
			x:  make([]float32, p), y: make([]float32, q),
		}
	}
	return h
}

// Add adds a part of the observations to the sets that belongs names. It returns how far the part pulls the ranks of x and of y: what it
// adds to their Reach, to first order, where it is counted twice. The pulls of all parts add up to nothing.
func (h *Halves) Add(part *Scatter[float32], belongs func(set int) bool) (x, y float64) {
	f, m := h.whole.frame, float32(part.N)
	delta := make([]float32, h.all.P)
	for i := range delta {
		delta[i] = float32(part.Mean[i] - h.all.Mean[i])
	}
	d := h.all.P / 2
	c := f.reduce(part)
	dx, dy := coordinates(f.leadingX(), delta[:d]), coordinates(f.leadingY(), delta[d:])
	addOuter(c.XX, m, dx, dx)
	addOuter(c.YY, m, dy, dy)
	addOuter(c.XY, m, dx, dy)
	for i := range h.sums {
		if s := &h.sums[i]; belongs(i) {
			s.n += part.N
			addTriangle(s.xx, c.XX)
			addTriangle(s.yy, c.YY)
			addAll(s.xy.Data, c.XY.Data, 1)
			addAll(s.x, dx, m)
			addAll(s.y, dy, m)
		}
	}
	tx, ty := variancesAbout(part, delta)
	return f.x.Pull(diagonalOf(c.XX), tx), f.y.Pull(diagonalOf(c.YY), ty)
}

// Set is the scatters of the coordinates of a set, about its mean, and the number of its observations. They are given away, and last until
// another set or part is asked for.
func (h *Halves) Set(i int) (p PairSingle, n int) {
	s := h.sums[i]
	h.sums[i] = coordinateSum{}
	f := h.whole.frame
	f.work.reset(0)
	xx, yy := squareOf(s.xx, f.work.matrix(f.x.K, f.x.K)), squareOf(s.yy, f.work.matrix(f.y.K, f.y.K))
	if s.n > 0 {
		addOuter(xx, -1/float32(s.n), s.x, s.x)
		addOuter(yy, -1/float32(s.n), s.y, s.y)
		addOuter(s.xy, -1/float32(s.n), s.x, s.y)
	}
	return PairSingle{XX: xx, YY: yy, XY: s.xy, Overlap: part(f.overlap1, 0, f.x.K, 0, f.y.K), work: &f.work}, s.n
}

// variancesAbout is the variance of x and of y of a part, about a mean from which its own differs by delta.
func variancesAbout(part *Scatter[float32], delta []float32) (x, y float64) {
	for i, v := range part.Variances() {
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

// addOuter adds factor a bᵀ to s.
func addOuter(s blas32.General, factor float32, a, b []float32) {
	for i := range s.Rows {
		addAll(rowOf(s, i), b, factor*a[i])
	}
}

// addTriangle adds the upper triangle of a matrix to one whose rows follow one another.
func addTriangle(sum []float32, m blas32.General) {
	for i := range m.Rows {
		row := rowOf(m, i)[i:]
		addAll(sum[:len(row)], row, 1)
		sum = sum[len(row):]
	}
}

// squareOf puts a triangle whose rows follow one another into the upper one of m. What is below it is 0.
func squareOf(triangle []float32, m blas32.General) blas32.General {
	for i := range m.Rows {
		row := rowOf(m, i)
		clear(row[:i])
		triangle = triangle[copy(row[i:], triangle):]
	}
	return m
}

func addAll(dst, src []float32, by float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] += by * src[i]
	}
}

// part is the rows top to bottom and columns left to right of a matrix, none of them empty.
func part(m blas32.General, top, bottom, left, right int) blas32.General {
	return blas32.General{Rows: bottom - top, Cols: right - left, Stride: m.Stride, Data: m.Data[top*m.Stride+left:]}
}
