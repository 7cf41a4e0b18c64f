package linalg

import (
	"github.com/noether-ml/noether/tensor"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// CholeskySingle replaces the upper triangle of an n x n matrix A in float32 by its Cholesky factor
// T, A = Tᵀ T. stride is the distance between rows, in elements. It reports whether the
// matrix is positive definite.
func CholeskySingle(a []float32, n, stride int) bool { return library.CholeskySingle(a, n, stride) }

// EigenSingle returns the eigenvalues, ascending, of a symmetric n x n matrix in float32. It reads
// the upper triangle of a, and replaces the rows of a by the eigenvectors in the same order. ok is
// false if the iteration does not converge.
func EigenSingle(a []float32, n int) (values []float32, ok bool) { return library.EigenSingle(a, n) }

// A Library computes decompositions that gonum lacks.
type Library interface {
	CholeskySingle(a []float32, n, stride int) bool
	EigenSingle(a []float32, n int) (values []float32, ok bool)
	// LeadingEigen is LeadingEigen for n > 32.
	LeadingEigen(a []float64, n int, count func(values []float64) int) (values []float64, vectors *mat.Dense, err error)
}

var library Library = Gonum{}

// Use makes the functions of this package call a library. Call it before any of them.
func Use(l Library) { library = l }

// Gonum is the Library of gonum, with float32 converted to float64.
type Gonum struct{}

// CholeskySingle implements Library.
func (Gonum) CholeskySingle(a []float32, n, stride int) bool {
	a64 := make([]float64, n*n)
	for i := range n {
		for j := i; j < n; j++ {
			a64[i*n+j] = float64(a[i*stride+j])
		}
	}
	_, ok := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Upper, N: n, Stride: n, Data: a64})
	for i := range n {
		toFloat32(a[i*stride+i:i*stride+n], a64[i*n+i:(i+1)*n])
	}
	return ok
}

// EigenSingle implements Library.
func (Gonum) EigenSingle(a []float32, n int) ([]float32, bool) {
	if n == 0 {
		return nil, true
	}
	a64 := tensor.Float64s(a)
	values, err := eigen(a64, n)
	if err != nil {
		return nil, false
	}
	Transpose(a64, n, n)
	toFloat32(a, a64)
	out := make([]float32, n)
	toFloat32(out, values)
	return out, true
}

// LeadingEigen implements Library.
func (Gonum) LeadingEigen(a []float64, n int, count func(values []float64) int) ([]float64, *mat.Dense, error) {
	return leadingOf(syev, a, n, count)
}

func toFloat32(dst []float32, src []float64) {
	for i, v := range src {
		dst[i] = float32(v)
	}
}

// Transpose transposes an n x n matrix, whose rows are lda values apart, in place, in tiles that
// fit in the cache.
func Transpose(a []float64, n, lda int) {
	const side = 32
	for i0 := 0; i0 < n; i0 += side {
		for j0 := i0; j0 < n; j0 += side {
			for i := i0; i < min(i0+side, n); i++ {
				for j := max(j0, i+1); j < min(j0+side, n); j++ {
					a[i*lda+j], a[j*lda+i] = a[j*lda+i], a[i*lda+j]
				}
			}
		}
	}
}
