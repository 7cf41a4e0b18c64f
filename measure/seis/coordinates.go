package seis

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/internal/linalg"
)

// bases are the principal subspaces U of x and V of y, of dimensions K and K', and memory for
// scatters in them. A margin is a few basis vectors more (see subspace). One goroutine at a time
// may use them.
type bases struct {
	x, y          subspace
	u, v          blas32.General // the bases, margins included, in float32
	overlap       *mat.Dense     // (K + margin) x (K' + margin'): inner products of the vectors of both bases
	overlapSingle blas32.General // the same in float32
	square        []float32      // memory for a d x d matrix
	half          []float32      // memory for S V, the first half of a product Uᵀ S V
	clean         *cleanScores   // results that are shared with other accumulators; x is one of them
	work          workspace      // for the results of one jackknife group of observations at a time
}

func newBases(clean *cleanScores, y subspace) *bases {
	x := clean.space
	f := &bases{x: x, y: y, clean: clean, u: toSingle(x.basis), v: toSingle(y.basis), overlap: new(mat.Dense)}
	f.overlap.Mul(x.basis.T(), y.basis)
	f.overlapSingle = toSingle(f.overlap)
	return f
}

// coordinates are the scatters of all observations in both bases, margins included.
type coordinates struct {
	xx, yy []float64  // diagonals; the other values of these scatters are zero
	xy     *mat.Dense // between the two
	bases  *bases
}

// cross is the scatter of x with y, d x d.
func (f *bases) coordinates(cross []float64) coordinates {
	d, _ := f.x.basis.Dims()
	var half, xy mat.Dense
	half.Mul(mat.NewDense(d, d, cross), f.y.basis)
	xy.Mul(f.x.basis.T(), &half)
	return coordinates{xx: f.x.Values, yy: f.y.Values, xy: &xy, bases: f}
}

// leading returns the scatters of the coordinates in the subspaces without their margins.
func (c coordinates) leading() principalMoments {
	p, q := c.bases.x.K, c.bases.y.K
	return principalMoments{
		xx: c.xx[:p], yy: c.yy[:q],
		xy:      mat.DenseCopyOf(c.xy.Slice(0, p, 0, q)),
		overlap: mat.DenseCopyOf(c.bases.overlap.Slice(0, p, 0, q)),
	}
}

// shuffled returns coordinates(c).leading() in float32, enough for a null, for the scatter c =
// factor cross of shuffled pairs, d x d. It is valid until the bases are used again.
func (f *bases) shuffled(cross []float64, factor float64) principalSingleMoments {
	d, p, q := f.u.Rows, f.x.K, f.y.K
	between := blas32.General{Rows: d, Cols: d, Stride: d, Data: grow(&f.square, d*d)}
	for i, v := range cross {
		between.Data[i] = float32(factor * v)
	}
	f.work.reset()
	half, xy := f.halfOf(d, q), f.work.matrix(p, q)
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, between, submatrix(f.v, 0, d, 0, q), 0, half)
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, submatrix(f.u, 0, d, 0, p), half, 0, xy)
	return principalSingleMoments{xx: f.x.Values[:p], yy: f.y.Values[:q], xy: xy, overlap: submatrix(f.overlapSingle, 0, p, 0, q), work: &f.work}
}

func project(u blas32.General, x []float32) []float32 {
	y := blas32.Vector{N: u.Cols, Inc: 1, Data: make([]float32, u.Cols)}
	blas32.Gemv(blas.Trans, 1, u, blas32.Vector{N: u.Rows, Inc: 1, Data: x}, 0, y)
	return y.Data
}

// atRanks returns float32 scatters in the first p axes of x and q of y, maybe in the margins, valid
// until the next use of the bases.
func (c coordinates) atRanks(p, q int) principalSingleMoments {
	f := c.bases
	f.work.reset()
	xy := f.work.matrix(p, q)
	for i := range p {
		narrow(rowOf(xy, i), c.xy.RawRowView(i)[:q])
	}
	return principalSingleMoments{xx: c.xx[:p], yy: c.yy[:q], xy: xy, overlap: submatrix(f.overlapSingle, 0, p, 0, q), work: &f.work}
}

// the bases without their margins
func (f *bases) leadingX() blas32.General { return submatrix(f.u, 0, f.u.Rows, 0, f.x.K) }
func (f *bases) leadingY() blas32.General { return submatrix(f.v, 0, f.v.Rows, 0, f.y.K) }

// reduceBetween returns Uᵀ S V without margins, for S of x with y from the scatter s of (x, y).
func (f *bases) reduceBetween(s *linalg.Scatter[float32]) blas32.General {
	d := s.P / 2
	between := blas32.General{Rows: d, Cols: d, Stride: d, Data: grow(&f.square, d*d)}
	for i := range d {
		copy(rowOf(between, i), s.Row(i, d))
	}
	u, v := f.leadingX(), f.leadingY()
	half := f.halfOf(d, v.Cols)
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, between, v, 0, half)
	out := f.work.matrix(u.Cols, v.Cols)
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, u, half, 0, out)
	return out
}

func (f *bases) halfOf(rows, cols int) blas32.General {
	return blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: grow(&f.half, rows*cols)}
}

// strip is the number of rows of an upper triangle multiplied at once; smaller ones multiply fewer
// zeros below the diagonal.
const strip = 128

// reduceSquare returns Uᵀ S U of the scatter of d variables from lo (0: x, d: y). With T its upper
// triangle with halved diagonal, it is Uᵀ T U + (Uᵀ T U)ᵀ. Only the upper triangle is valid.
func (f *bases) reduceSquare(s *linalg.Scatter[float32], lo int, u blas32.General) blas32.General {
	d := u.Rows
	half := f.halfOf(d, u.Cols)
	for top := 0; top < d; top += strip {
		rows, cols := min(strip, d-top), d-top
		t := blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: grow(&f.square, rows*cols)}
		for i := range rows {
			row := rowOf(t, i)
			clear(row[:i])
			copy(row[i:], s.Row(lo+top+i, lo+top+i)[:cols-i])
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

// addTranspose adds Aᵀ to A's upper triangle and diagonal, in tiles for the cache.
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
