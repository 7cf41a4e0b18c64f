package linalg

import (
	"fmt"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// Eigen returns the eigenvalues of a symmetric n x n matrix, descending, and its eigenvectors as columns in the same
// order. a is row-major, upper triangle; it is overwritten.
func Eigen(a []float64, n int) (values []float64, vectors *mat.Dense, err error) {
	values, err = eigen(a, n)
	if err != nil {
		return nil, nil, err
	}
	return reversed(values), largest(a, n, n), nil
}

// Decompose returns the thin singular value decomposition U diag(s) Vᵀ of a matrix by way of the eigenvectors of its
// smaller Gram matrix, in half the time that SVD takes. Singular values are right to about 1e-8 of the largest; the
// vectors on one side of smaller ones are zero.
func Decompose(a *mat.Dense) (u *mat.Dense, s []float64, v *mat.Dense, err error) {
	return decompose(a)
}

// SVD returns the thin singular value decomposition U diag(s) Vᵀ of an m x n matrix, with all singular values right to
// rounding of the largest. a is overwritten.
func SVD(a *mat.Dense) (u *mat.Dense, s []float64, v *mat.Dense, err error) {
	m, n := a.Dims()
	k := min(m, n)
	u, vt := mat.NewDense(m, k, nil), mat.NewDense(k, n, nil)
	if s, err = singular(lapack.SVDStore, a, u.RawMatrix(), vt.RawMatrix()); err != nil {
		return nil, nil, nil, err
	}
	return u, s, mat.DenseCopyOf(vt.T()), nil
}

// SingularValues returns the singular values of a matrix, descending. a is overwritten.
func SingularValues(a *mat.Dense) ([]float64, error) {
	return singular(lapack.SVDNone, a, blas64.General{Stride: 1}, blas64.General{Stride: 1})
}

func singular(job lapack.SVDJob, a *mat.Dense, u, vt blas64.General) ([]float64, error) {
	m, n := a.Dims()
	s := make([]float64, min(m, n))
	want := make([]float64, 1)
	lapack64.Gesvd(job, job, a.RawMatrix(), u, vt, s, want, -1)
	work := make([]float64, int(want[0]))
	if !lapack64.Gesvd(job, job, a.RawMatrix(), u, vt, s, work, len(work)) {
		return nil, fmt.Errorf("singular values of a %d x %d matrix: %w", m, n, ErrNotConverged)
	}
	return s, nil
}
