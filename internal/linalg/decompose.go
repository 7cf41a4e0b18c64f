package linalg

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// ErrNotConverged is returned if the iteration for eigenvalues or singular values does not
// converge. The functions of this file return no other errors.
var ErrNotConverged = errors.New("linalg: the decomposition does not converge")

// Eigen returns the eigenvalues of a symmetric n x n matrix, descending, and its eigenvectors as
// columns in the same order. a is row-major; only its upper triangle is read. It is overwritten.
func Eigen(a []float64, n int) (values []float64, vectors *mat.Dense, err error) {
	values, err = eigen(a, n)
	if err != nil {
		return nil, nil, err
	}
	return reversed(values), leadingColumns(a, n, n), nil
}

// LeadingEigen returns all eigenvalues of a symmetric n x n matrix, descending, and the
// eigenvectors of the k largest as columns, n x k. k is the result of count, which is called with
// all eigenvalues. vectors is nil for k = 0. a is row-major; only its upper triangle is read. It is
// overwritten.
func LeadingEigen(a []float64, n int, count func(values []float64) int) (values []float64, vectors *mat.Dense, err error) {
	if n <= smallProblem {
		return leadingOf(gonum.Implementation{}.Dsyev, a, n, count)
	}
	return library.LeadingEigen(a, n, count)
}

// smallProblem is the largest size of an eigenproblem that gonum solves faster than a library.
// OpenBLAS would also wake its threads, which then wait for more work without sleeping.
const smallProblem = 32

// A syevFunc is an implementation of LAPACK's Dsyev, which computes the eigenvalues and
// eigenvectors of a symmetric matrix.
type syevFunc func(job lapack.EVJob, ul blas.Uplo, n int, a []float64, lda int, values, work []float64, lwork int) bool

func syev(job lapack.EVJob, ul blas.Uplo, n int, a []float64, lda int, values, work []float64, lwork int) bool {
	return lapack64.Syev(job, blas64.Symmetric{Uplo: ul, N: n, Stride: lda, Data: a}, values, work, lwork)
}

// leadingOf implements LeadingEigen by a given Dsyev, which computes all eigenvectors.
func leadingOf(syev syevFunc, a []float64, n int, count func(values []float64) int) (values []float64, vectors *mat.Dense, err error) {
	if values, err = eigenBy(syev, a, n); err != nil {
		return nil, nil, err
	}
	if k := count(reversed(values)); k > 0 {
		vectors = leadingColumns(a, n, k)
	}
	return values, vectors, nil
}

// Decompose returns the thin singular value decomposition U diag(s) Vᵀ of a matrix a, with s
// descending, from the eigenvectors of the smaller of a aᵀ and aᵀ a, in half the time of SVD.
// Singular values have errors of about 1e-8 of the largest. For those below that, the columns of U,
// or of V if a has fewer rows than columns, are zero.
func Decompose(a *mat.Dense) (u *mat.Dense, s []float64, v *mat.Dense, err error) {
	rows, cols := a.Dims()
	if rows < cols {
		v, s, u, err = Decompose(mat.DenseCopyOf(a.T()))
		return u, s, v, err
	}
	gram := make([]float64, cols*cols)
	blas64.Syrk(blas.Trans, 1, a.RawMatrix(), 0, blas64.Symmetric{Uplo: blas.Upper, N: cols, Stride: cols, Data: gram})
	values, err := eigen(gram, cols)
	if err != nil {
		return nil, nil, nil, err
	}
	s, v, u = reversed(values), leadingColumns(gram, cols, cols), new(mat.Dense)
	u.Mul(a, v)
	scale := make([]float64, cols)
	for i, square := range s {
		s[i] = math.Sqrt(max(square, 0))
		if s[i] > relativeTolerance*s[0] {
			scale[i] = 1 / s[i]
		}
	}
	for i := range rows {
		row := u.RawRowView(i)
		for j := range row {
			row[j] *= scale[j]
		}
	}
	return u, s, v, nil
}

// relativeTolerance is the accuracy of Decompose, as a fraction of the largest singular value.
const relativeTolerance = 1e-8

// SVD returns the thin singular value decomposition U diag(s) Vᵀ of an m x n matrix, with s
// descending. The error of each singular value is about the rounding error of the largest. a is
// overwritten.
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

// singular returns the singular values of a, descending, and overwrites a. Unless job is
// lapack.SVDNone, it writes the left singular vectors to the columns of u and the right ones to the
// rows of vt.
func singular(job lapack.SVDJob, a *mat.Dense, u, vt blas64.General) ([]float64, error) {
	m, n := a.Dims()
	s := make([]float64, min(m, n))
	size := make([]float64, 1) // length of work: the result of a call with -1 in place of the length
	lapack64.Gesvd(job, job, a.RawMatrix(), u, vt, s, size, -1)
	work := make([]float64, int(size[0]))
	if !lapack64.Gesvd(job, job, a.RawMatrix(), u, vt, s, work, len(work)) {
		return nil, fmt.Errorf("singular values of a %d x %d matrix: %w", m, n, ErrNotConverged)
	}
	return s, nil
}

// eigen returns the eigenvalues of a symmetric n x n matrix, ascending. It reads the upper triangle
// of a, and replaces the columns of a by the eigenvectors.
func eigen(a []float64, n int) ([]float64, error) { return eigenBy(syev, a, n) }

func eigenBy(syev syevFunc, a []float64, n int) ([]float64, error) {
	values, size := make([]float64, n), make([]float64, 1) // size: see singular
	syev(lapack.EVCompute, blas.Upper, n, a, n, values, size, -1)
	work := make([]float64, int(size[0]))
	if !syev(lapack.EVCompute, blas.Upper, n, a, n, values, work, len(work)) {
		return nil, fmt.Errorf("eigenvectors of a symmetric %d x %d matrix: %w", n, n, ErrNotConverged)
	}
	return values, nil
}

// leadingColumns returns the last k columns of an n x n matrix in reverse order: the eigenvectors
// of the k largest eigenvalues, descending, from those of eigen.
func leadingColumns(columns []float64, n, k int) *mat.Dense {
	out := mat.NewDense(n, k, nil)
	for i := range n {
		row, from := out.RawRowView(i), columns[i*n:(i+1)*n]
		for j := range row {
			row[j] = from[n-1-j]
		}
	}
	return out
}

func reversed(ascending []float64) []float64 {
	slices.Reverse(ascending)
	return ascending
}
