package linalg

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
)

// CholeskySingle replaces the upper triangle of an n x n matrix A in float32, whose rows are stride apart, by its
// Cholesky factor T: A = Tᵀ T. It reports whether the matrix is positive definite.
func CholeskySingle(a []float32, n, stride int) bool { return lapack32.cholesky(a, n, stride) }

// EigenSingle returns the eigenvalues, ascending, of a symmetric n x n matrix in float32, and puts the eigenvectors
// in the place of its rows. The upper triangle of a is read. It is false where the iteration does not converge.
func EigenSingle(a []float32, n int) (values []float32, ok bool) { return lapack32.eigen(a, n) }

// singleLAPACK are the decompositions in float32, which gonum does not have.
type singleLAPACK interface {
	// cholesky replaces the upper triangle of an n x n matrix, its rows stride apart, by its factor T, A = Tᵀ T; false where
	// there is none.
	cholesky(a []float32, n, stride int) bool
	// eigen returns the eigenvalues, ascending, of a symmetric n x n matrix of which the upper triangle is given, and
	// puts its eigenvectors in the place of its rows.
	eigen(a []float32, n int) (values []float32, ok bool)
}

// lapack32 is what computes; Accelerate sets it.
var lapack32 singleLAPACK = byDouble{}

// byDouble computes in float64, by what is registered there.
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
