package linalg

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/mat"
)

// A Pair holds the scatters of two sets of variables, of p and q, and the one between them.
type Pair struct {
	XX, YY *mat.SymDense // p x p and q x q
	XY     *mat.Dense    // p x q
}

// Canonical returns the canonical correlations of the pair; see the function of that name.
func (p Pair) Canonical() (CCA, error) { return Canonical(p.XX, p.YY, p.XY) }

// A Frame is a basis of the first half x of the variables of a Scatter and one of the second half y, in the float32 that parts
// are kept in.
type Frame struct{ u, v blas32.General }

// NewFrame takes two bases, D x p and D x q with orthonormal columns.
func NewFrame(u, v *mat.Dense) Frame { return Frame{single32(u), single32(v)} }

func single32(m *mat.Dense) blas32.General {
	rows, cols := m.Dims()
	out := blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: make([]float32, rows*cols)}
	for i, v := range m.RawMatrix().Data {
		out.Data[i] = float32(v)
	}
	return out
}

// Without returns the scatters of the coordinates Uᵀ x and Vᵀ y with some observations left out: whole is the scatters of the coordinates of all, and
// part of the observations that all is of. With n and m observations, means m_n and m_m, what remains is
//
//	S = S_n - S_m - n m / (n - m) (m_m - m_n)(m_m - m_n)ᵀ.
func (f Frame) Without(whole Pair, all *Scatter[float64], part *Scatter[float32]) Pair {
	n, m := float64(all.N), float64(part.N)
	delta := make([]float32, all.P)
	for i := range delta {
		delta[i] = float32(part.Mean[i] - all.Mean[i])
	}
	d, factor := all.P/2, n*m/(n-m)
	dx, dy := coordinates(f.u, delta[:d]), coordinates(f.v, delta[d:])
	out := f.reduce(part)
	subtract(out.XX, whole.XX, factor, dx)
	subtract(out.YY, whole.YY, factor, dy)
	out.XY.Sub(whole.XY, out.XY)
	out.XY.RankOne(out.XY, -factor, dx, dy)
	return out
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
