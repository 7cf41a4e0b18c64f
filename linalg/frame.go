package linalg

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/mat"
)

// A Frame is a principal subspace of the first half x of the variables of a Scatter and one of the second half y, to
// compute the scatters of coordinates in them from. It is not for several goroutines at a time.
type Frame struct {
	x, y     Subspace
	u, v     blas32.General // the bases, margins included, in the float32 that parts are kept in
	overlap  *mat.Dense     // between the bases
	overlap1 blas32.General // the same in float32
	square   []float32      // D x D and D x (K + margin): what reduce works with
	half     []float32
	work     workspace // what comes of one group of observations after the other
}

// NewFrame makes a frame of two subspaces of one space, neither of dimension 0.
func NewFrame(x, y Subspace) *Frame {
	f := &Frame{x: x, y: y, u: toSingle(x.Basis), v: toSingle(y.Basis), overlap: new(mat.Dense)}
	f.overlap.Mul(x.Basis.T(), y.Basis)
	f.overlap1 = toSingle(f.overlap)
	return f
}

func toSingle(m *mat.Dense) blas32.General {
	rows, cols := m.Dims()
	out := newSingle(rows, cols)
	narrow(out.Data, m.RawMatrix().Data)
	return out
}

// A Whole is the scatters of coordinates in both bases of a Frame, margins included.
type Whole struct {
	xx, yy []float64  // diagonals; there is nothing off them
	xy     *mat.Dense // between
	frame  *Frame
}

// Whole returns the scatters of the coordinates of the observations that the subspaces are those of. cross is the
// scatter of x with y, D x D, or what is to stand in for it.
func (f *Frame) Whole(cross []float64) Whole {
	d, _ := f.x.Basis.Dims()
	var half, xy mat.Dense
	half.Mul(mat.NewDense(d, d, cross), f.y.Basis)
	xy.Mul(f.x.Basis.T(), &half)
	return Whole{xx: f.x.Values, yy: f.y.Values, xy: &xy, frame: f}
}

// Leading returns the scatters of the coordinates in the subspaces, without margins.
func (w Whole) Leading() Principal {
	p, q := w.frame.x.K, w.frame.y.K
	return Principal{
		XX: w.xx[:p], YY: w.yy[:q],
		XY:      mat.DenseCopyOf(w.xy.Slice(0, p, 0, q)),
		Overlap: mat.DenseCopyOf(w.frame.overlap.Slice(0, p, 0, q)),
	}
}

// Single is Whole(cross).Leading() in float32 and with cross multiplied by a factor: for observations that do not belong together,
// of whose correlations a few digits are enough. It is valid until the frame is used again.
func (f *Frame) Single(cross []float64, factor float64) PrincipalSingle {
	d, p, q := f.u.Rows, f.x.K, f.y.K
	between := blas32.General{Rows: d, Cols: d, Stride: d, Data: grow(&f.square, d*d)}
	for i, v := range cross {
		between.Data[i] = float32(factor * v)
	}
	f.work.reset(0)
	half, xy := f.halfOf(d, q), f.work.matrix(p, q)
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, between, part(f.v, 0, d, 0, q), 0, half)
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, part(f.u, 0, d, 0, p), half, 0, xy)
	return PrincipalSingle{XX: f.x.Values[:p], YY: f.y.Values[:q], XY: xy, Overlap: part(f.overlap1, 0, p, 0, q), work: &f.work}
}

// coordinates is Uᵀ x.
func coordinates(u blas32.General, x []float32) []float32 {
	y := blas32.Vector{N: u.Cols, Inc: 1, Data: make([]float32, u.Cols)}
	blas32.Gemv(blas.Trans, 1, u, blas32.Vector{N: u.Rows, Inc: 1, Data: x}, 0, y)
	return y.Data
}

// At returns the scatters of the coordinates in the first p and q axes, margins allowing, in float32. It is valid until the frame is used
// again.
func (w Whole) At(p, q int) PrincipalSingle {
	f := w.frame
	f.work.reset(0)
	xy := f.work.matrix(p, q)
	for i := range p {
		narrow(rowOf(xy, i), w.xy.RawRowView(i)[:q])
	}
	return PrincipalSingle{XX: w.xx[:p], YY: w.yy[:q], XY: xy, Overlap: part(f.overlap1, 0, p, 0, q), work: &f.work}
}

// leadingX and leadingY are the bases without their margins.
func (f *Frame) leadingX() blas32.General { return part(f.u, 0, f.u.Rows, 0, f.x.K) }
func (f *Frame) leadingY() blas32.General { return part(f.v, 0, f.v.Rows, 0, f.y.K) }

// reduce returns the scatters of the coordinates of some observations, without margins, valid until the frame is used again.
func (f *Frame) reduce(s *Scatter[float32]) PairSingle {
	d := s.P / 2
	f.work.reset(0)
	return PairSingle{
		XX: f.reduceSquare(s, 0, f.leadingX()),
		YY: f.reduceSquare(s, d, f.leadingY()),
		XY: f.reduceBetween(s),
	}
}

// reduceBetween is Uᵀ S V for the scatter S of x with y.
func (f *Frame) reduceBetween(s *Scatter[float32]) blas32.General {
	d := s.P / 2
	between := blas32.General{Rows: d, Cols: d, Stride: d, Data: grow(&f.square, d*d)}
	for i := range d {
		copy(rowOf(between, i), s.row(i, d))
	}
	u, v := f.leadingX(), f.leadingY()
	half := f.halfOf(d, v.Cols)
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, between, v, 0, half)
	out := f.work.matrix(u.Cols, v.Cols)
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, u, half, 0, out)
	return out
}

func (f *Frame) halfOf(rows, cols int) blas32.General {
	return blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: grow(&f.half, rows*cols)}
}

// strip is the number of rows of a triangle that are multiplied at once, with what lies right of their first diagonal
// element: narrow enough to leave out most of the zeros.
const strip = 128

// reduceSquare is Uᵀ S U for the scatter S of the variables from lo on among themselves. With T the upper triangle of S
// and half the diagonal, S = T + Tᵀ, so Uᵀ S U is Uᵀ T U and its transpose. The upper triangle is what counts.
func (f *Frame) reduceSquare(s *Scatter[float32], lo int, u blas32.General) blas32.General {
	d := u.Rows
	half := f.halfOf(d, u.Cols)
	for top := 0; top < d; top += strip {
		rows, cols := min(strip, d-top), d-top
		t := blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: grow(&f.square, rows*cols)}
		for i := range rows {
			row := rowOf(t, i)
			clear(row[:i])
			copy(row[i:], s.row(lo+top+i, lo+top+i)[:cols-i])
			row[i] /= 2
		}
		below := blas32.General{Rows: cols, Cols: u.Cols, Stride: u.Stride, Data: u.Data[top*u.Stride:]}
		blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, t, below, 0,
			blas32.General{Rows: rows, Cols: u.Cols, Stride: half.Stride, Data: half.Data[top*half.Stride:]})
	}
	out := f.work.matrix(u.Cols, u.Cols)
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, u, half, 0, out)
	addTranspose(out)
	return out
}

// addTranspose adds its transpose to a square matrix, above the diagonal and on it, tile by tile so that both sides stay in the
// cache.
func addTranspose(a blas32.General) {
	const side = 32
	n := a.Rows
	for i0 := 0; i0 < n; i0 += side {
		for j0 := i0; j0 < n; j0 += side {
			for i := i0; i < min(i0+side, n); i++ {
				for j := max(j0, i); j < min(j0+side, n); j++ {
					a.Data[i*a.Stride+j] += a.Data[j*a.Stride+i]
				}
			}
		}
	}
}
