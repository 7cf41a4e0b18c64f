package linalg

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/mat"
)

// A Frame is a principal subspace of the first half x of the variables of a Scatter and one of the second half y, to
// compute the scatters of coordinates in them from.
type Frame struct {
	x, y    Subspace
	u, v    blas32.General // the bases, margins included, in the float32 that parts are kept in
	overlap *mat.Dense     // between the bases
}

// NewFrame makes a frame of two subspaces of one space, neither of dimension 0.
func NewFrame(x, y Subspace) Frame {
	f := Frame{x: x, y: y, u: single32(x.Basis), v: single32(y.Basis), overlap: new(mat.Dense)}
	f.overlap.Mul(x.Basis.T(), y.Basis)
	return f
}

func single32(m *mat.Dense) blas32.General {
	rows, cols := m.Dims()
	out := blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: make([]float32, rows*cols)}
	for i, v := range m.RawMatrix().Data {
		out.Data[i] = float32(v)
	}
	return out
}

// A Whole is the scatters of coordinates in both bases of a Frame, margins included.
type Whole struct{ pair Pair }

// Whole returns the scatters of the coordinates of the observations that the subspaces are those of. cross is the
// scatter of x with y, D x D, or what is to stand in for it.
func (f Frame) Whole(cross []float64) Whole {
	d, _ := f.x.Basis.Dims()
	var half, xy mat.Dense
	half.Mul(mat.NewDense(d, d, cross), f.y.Basis)
	xy.Mul(f.x.Basis.T(), &half)
	return Whole{Pair{XX: diagonal(f.x.Values), YY: diagonal(f.y.Values), XY: &xy, Overlap: f.overlap}}
}

func diagonal(values []float64) *mat.SymDense {
	s := mat.NewSymDense(len(values), nil)
	for i, v := range values {
		s.SetSym(i, i, v)
	}
	return s
}

// Leading returns the scatters of the coordinates in the subspaces, without margins.
func (f Frame) Leading(w Whole) Pair {
	p, q := f.x.K, f.y.K
	return Pair{
		XX:      w.pair.XX.SliceSym(0, p).(*mat.SymDense),
		YY:      w.pair.YY.SliceSym(0, q).(*mat.SymDense),
		XY:      mat.DenseCopyOf(w.pair.XY.Slice(0, p, 0, q)),
		Overlap: mat.DenseCopyOf(w.pair.Overlap.Slice(0, p, 0, q)),
	}
}

// Without returns the scatters of coordinates in the subspaces that a Scatter has without a part of its observations,
// which is a tenth of them or so. With n and m observations of means a and b, what remains is
//
//	S = S_n - S_m - n m / (n - m) (b - a)(b - a)ᵀ.
//
// Finding its eigenvectors afresh is what takes long, so the subspaces are moved only where they end: the first
// eigenvectors of all observations stay, and the last of them, with those of the margin, are turned to the
// eigenvectors of S among them and cut off anew at the fraction of the variance.
func (f Frame) Without(w Whole, all *Scatter[float64], part *Scatter[float32]) (Pair, error) {
	n, m := float64(all.N), float64(part.N)
	factor := n * m / (n - m)
	delta := make([]float32, all.P)
	for i := range delta {
		delta[i] = float32(part.Mean[i] - all.Mean[i])
	}
	d := all.P / 2
	dx, dy := coordinates(f.u, delta[:d]), coordinates(f.v, delta[d:])
	rest := f.reduce(part)
	subtract(rest.XX, w.pair.XX, factor, dx)
	subtract(rest.YY, w.pair.YY, factor, dy)
	rest.XY.Sub(w.pair.XY, rest.XY)
	rest.XY.RankOne(rest.XY, -factor, dx, dy)
	rest.Overlap = w.pair.Overlap

	tx, ty := remaining(all, part, factor, delta)
	ex, err := f.x.end(rest.XX, tx)
	if err != nil {
		return Pair{}, err
	}
	ey, err := f.y.end(rest.YY, ty)
	if err != nil {
		return Pair{}, err
	}
	return rest.cut(ex, ey), nil
}

// remaining is the variance of x and of y without a part.
func remaining(all *Scatter[float64], part *Scatter[float32], factor float64, delta []float32) (x, y float64) {
	a, p := all.Variances(), part.Variances()
	for i := range a {
		v := a[i] - float64(p[i]) - factor*float64(delta[i])*float64(delta[i])
		if i < len(a)/2 {
			x += v
		} else {
			y += v
		}
	}
	return x, y
}

// subtract replaces s by whole - s - factor delta deltaᵀ.
func subtract(s, whole *mat.SymDense, factor float64, delta mat.Vector) {
	n := s.SymmetricDim()
	for i := range n {
		for j := i; j < n; j++ {
			s.SetSym(i, j, whole.At(i, j)-s.At(i, j)-factor*delta.AtVec(i)*delta.AtVec(j))
		}
	}
}

// coordinates is Uᵀ x.
func coordinates(u blas32.General, x []float32) *mat.VecDense {
	y := blas32.Vector{N: u.Cols, Inc: 1, Data: make([]float32, u.Cols)}
	blas32.Gemv(blas.Trans, 1, u, blas32.Vector{N: u.Rows, Inc: 1, Data: x}, 0, y)
	out := mat.NewVecDense(u.Cols, nil)
	for i, v := range y.Data {
		out.SetVec(i, float64(v))
	}
	return out
}

// reduce returns the scatters of the coordinates of some observations.
func (f Frame) reduce(s *Scatter[float32]) Pair {
	d := s.P / 2
	return Pair{
		XX: reduceSquare(s.Square(0, d), f.u),
		YY: reduceSquare(s.Square(d, 2*d), f.v),
		XY: reduceBetween(s.Between(0, d, 2*d), f.u, f.v),
	}
}

// reduceBetween is Uᵀ S V.
func reduceBetween(s []float32, u, v blas32.General) *mat.Dense {
	half := blas32.General{Rows: u.Rows, Cols: v.Cols, Stride: v.Cols, Data: make([]float32, u.Rows*v.Cols)}
	blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, blas32.General{Rows: u.Rows, Cols: v.Rows, Stride: v.Rows, Data: s}, v, 0, half)
	out := blas32.General{Rows: u.Cols, Cols: v.Cols, Stride: v.Cols, Data: make([]float32, u.Cols*v.Cols)}
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, u, half, 0, out)
	m := mat.NewDense(u.Cols, v.Cols, nil)
	for i, x := range out.Data {
		m.RawMatrix().Data[i] = float64(x)
	}
	return m
}

// reduceSquare is Uᵀ S U for a symmetric S of which the upper triangle is given and the rest is zero; s is overwritten.
// With T the triangle and half the diagonal, S = T + Tᵀ, so Uᵀ S U is Uᵀ T U and its transpose: no need to fill S.
func reduceSquare(s []float32, u blas32.General) *mat.SymDense {
	for i := range u.Rows {
		s[i*u.Rows+i] /= 2
	}
	t := reduceBetween(s, u, u)
	out := mat.NewSymDense(u.Cols, nil)
	for i := range u.Cols {
		for j := i; j < u.Cols; j++ {
			out.SetSym(i, j, t.At(i, j)+t.At(j, i))
		}
	}
	return out
}
