package linalg

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// CholeskySingle replaces the upper triangle of an n x n matrix A in float32 by its Cholesky factor
// T, A = Tᵀ T. It reports whether the matrix is positive definite.
func CholeskySingle(a []float32, n, stride int) bool { return lapack32.cholesky(a, n, stride) }

// EigenSingle returns the eigenvalues, ascending, of a symmetric n x n matrix in float32, of which
// it reads the upper triangle, and replaces its rows by the eigenvectors. ok is false if the
// iteration does not converge.
func EigenSingle(a []float32, n int) (values []float32, ok bool) { return lapack32.eigen(a, n) }

// singleLAPACK has the decompositions in float32, which gonum lacks.
type singleLAPACK interface {
	// cholesky is CholeskySingle.
	cholesky(a []float32, n, stride int) bool
	// eigen is EigenSingle.
	eigen(a []float32, n int) (values []float32, ok bool)
}

// lapack32 is the implementation in use. Accelerate replaces it.
var lapack32 singleLAPACK = byDouble{}

// byDouble computes in float64 with lapack64.
type byDouble struct{}

func (byDouble) cholesky(a []float32, n, stride int) bool {
	wide := make([]float64, n*n)
	for i := range n {
		for j := i; j < n; j++ {
			wide[i*n+j] = float64(a[i*stride+j])
		}
	}
	_, ok := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Upper, N: n, Stride: n, Data: wide})
	for i := range n {
		narrow(a[i*stride+i:i*stride+n], wide[i*n+i:(i+1)*n])
	}
	return ok
}

func (byDouble) eigen(a []float32, n int) ([]float32, bool) {
	if n == 0 {
		return nil, true
	}
	wide := widened(a)
	values, err := eigen(wide, n)
	if err != nil {
		return nil, false
	}
	transpose(wide, n, n)
	narrow(a, wide)
	out := make([]float32, n)
	narrow(out, values)
	return out, true
}

func widened(a []float32) []float64 {
	out := make([]float64, len(a))
	for i, v := range a {
		out[i] = float64(v)
	}
	return out
}

func narrow(dst []float32, src []float64) {
	for i, v := range src {
		dst[i] = float32(v)
	}
}
