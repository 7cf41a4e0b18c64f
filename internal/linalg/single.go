package linalg

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// CholeskySingle replaces the upper triangle of an n x n matrix A in float32 by its Cholesky factor
// T, A = Tᵀ T. stride is the distance between rows, in elements. It reports whether the
// matrix is positive definite.
func CholeskySingle(a []float32, n, stride int) bool { return lapack32.cholesky(a, n, stride) }

// EigenSingle returns the eigenvalues, ascending, of a symmetric n x n matrix in float32. It reads
// the upper triangle of a, and replaces the rows of a by the eigenvectors in the same order. ok is
// false if the iteration does not converge.
func EigenSingle(a []float32, n int) (values []float32, ok bool) { return lapack32.eigen(a, n) }

// A singleLAPACK implements decompositions in float32, which gonum does not have.
type singleLAPACK interface {
	// cholesky is CholeskySingle.
	cholesky(a []float32, n, stride int) bool
	// eigen is EigenSingle.
	eigen(a []float32, n int) (values []float32, ok bool)
}

// lapack32 is the implementation in use. LoadBackend replaces it.
var lapack32 singleLAPACK = viaFloat64{}

// viaFloat64 converts to float64 and uses gonum's lapack64.
type viaFloat64 struct{}

func (viaFloat64) cholesky(a []float32, n, stride int) bool {
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

func (viaFloat64) eigen(a []float32, n int) ([]float32, bool) {
	if n == 0 {
		return nil, true
	}
	a64 := toFloat64(a)
	values, err := eigen(a64, n)
	if err != nil {
		return nil, false
	}
	transpose(a64, n, n)
	toFloat32(a, a64)
	out := make([]float32, n)
	toFloat32(out, values)
	return out, true
}

func toFloat64(a []float32) []float64 {
	out := make([]float64, len(a))
	for i, v := range a {
		out[i] = float64(v)
	}
	return out
}

func toFloat32(dst []float32, src []float64) {
	for i, v := range src {
		dst[i] = float32(v)
	}
}
