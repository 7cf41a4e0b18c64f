package blas

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/internal/linalg"
)

// fastLAPACK is gonum's LAPACK with some decompositions replaced by those of a Fortran library,
// such as OpenBLAS or MKL. Those for eigenvalues and singular values use divide and conquer instead
// of QR iterations. gonum's matrices are row-major and the library's are column-major, so the
// library gets the transpose of each matrix: of a symmetric matrix, the other triangle (flipUplo).
// checkSize panics if a slice is shorter than its matrix. charLen is the hidden length of a Fortran
// character argument.
type fastLAPACK struct {
	gonum.Implementation
	lib *library
}

// Dpotrf computes the Cholesky factor of a matrix in place; ok is false if the matrix is not
// positive definite.
func (f fastLAPACK) Dpotrf(ul blas.Uplo, n int, a []float64, lda int) (ok bool) {
	if n == 0 {
		return true
	}
	checkSize("A", a, n, n, lda)
	var info int32
	f.lib.dpotrf(flipUplo(ul), int32Ptr(n), &a[0], int32Ptr(lda), &info, charLen)
	return info == 0
}

// Dsyev computes the eigenvalues of a symmetric matrix in ascending order and, with EVCompute, its
// eigenvectors as the columns of a. It calls LAPACK's dsyevd, which needs more workspace than
// dsyev: if work is too short, it allocates its own. For lwork = -1 it only stores the size of the
// workspace in work[0].
func (f fastLAPACK) Dsyev(jobz lapack.EVJob, ul blas.Uplo, n int, a []float64, lda int, w, work []float64, lwork int) (ok bool) {
	// The sizes of the workspaces of floats and integers that the documentation of dsyevd requires.
	floats, integers := 2*n+1, 1
	if jobz == lapack.EVCompute {
		floats, integers = 1+6*n+2*n*n, 3+5*n
	}
	if lwork == -1 {
		work[0] = float64(floats)
		return true
	}
	if n == 0 {
		return true
	}
	checkSize("A", a, n, n, lda)
	checkSize("the eigenvalues", w, 1, n, n)
	if len(work) < floats {
		work = make([]float64, floats)
	}
	var info int32
	f.lib.dsyevd(charPtr(jobz), flipUplo(ul), int32Ptr(n), &a[0], int32Ptr(lda), &w[0], &work[0], int32Ptr(floats), &make([]int32, integers)[0], int32Ptr(integers), &info, charLen, charLen)
	if jobz == lapack.EVCompute {
		linalg.Transpose(a, n, lda)
	}
	return info == 0
}

// LeadingEigen implements linalg.Library. It reduces the matrix to tridiagonal form, solves the
// tridiagonal problem by divide and conquer, and transforms only the k leading eigenvectors back.
// Unlike LAPACK's dsyevd it does not scale matrices with values above 1e146 or below 1e-146. Sums
// of squares of float32 values are not that large or small. count returns k, given the eigenvalues
// in descending order.
func (f fastLAPACK) LeadingEigen(a []float64, n int, count func(values []float64) int) (values []float64, vectors *mat.Dense, err error) {
	checkSize("A", a, n, n, n)
	// dstedc needs n² + 4 n + 1 values of work. dsytrd and dormqr are fastest with n times a block
	// size, of at most 64.
	values, z, work := make([]float64, n), make([]float64, n*n), make([]float64, n*n+64*n)
	sub, tau, iwork := make([]float64, n), make([]float64, n), make([]int32, 3+5*n)
	lwork := int32Ptr(len(work))
	var info int32
	f.lib.dsytrd(flipUplo(blas.Upper), int32Ptr(n), &a[0], int32Ptr(n), &values[0], &sub[0], &tau[0], &work[0], lwork, &info, charLen)
	if info == 0 {
		f.lib.dstedc(charPtr(lapack.EVTridiag), int32Ptr(n), &values[0], &sub[0], &z[0], int32Ptr(n), &work[0], lwork, &iwork[0], int32Ptr(len(iwork)), &info, charLen)
	}
	if info != 0 {
		return nil, nil, fmt.Errorf("eigenvectors of a symmetric %d x %d matrix: %w", n, n, linalg.ErrNotConverged)
	}
	slices.Reverse(values)
	k := count(values)
	if k == 0 {
		return values, nil, nil
	}
	z = z[(n-k)*n:] // the eigenvectors of the k largest eigenvalues; z is column-major
	if n > 1 {
		f.lib.dormqr(charPtr(blas.Left), charPtr(blas.NoTrans), int32Ptr(n-1), int32Ptr(k), int32Ptr(n-1), &a[1], int32Ptr(n), &tau[0], &z[1], int32Ptr(n), &work[0], lwork, &info, charLen, charLen)
	}
	return values, reversedColumns(z, n, k), nil
}

// reversedColumns returns the n x k matrix whose columns are the k rows, the last row first. It
// works in tiles that fit in the cache.
func reversedColumns(rows []float64, n, k int) *mat.Dense {
	const side = 32
	out := mat.NewDense(n, k, make([]float64, n*k))
	for i0 := 0; i0 < n; i0 += side {
		for j0 := 0; j0 < k; j0 += side {
			for i := i0; i < min(i0+side, n); i++ {
				to := out.RawRowView(i)
				for j := j0; j < min(j0+side, k); j++ {
					to[j] = rows[(k-1-j)*n+i]
				}
			}
		}
	}
	return out
}

func (f fastLAPACK) CholeskySingle(a []float32, n, stride int) bool {
	if n == 0 {
		return true
	}
	checkSize("A", a, n, n, stride)
	var info int32
	f.lib.spotrf(flipUplo(blas.Upper), int32Ptr(n), &a[0], int32Ptr(stride), &info, charLen)
	return info == 0
}

// EigenSingle implements linalg.Library. The library's eigenvectors, columns in column-major order,
// are the rows of a.
func (f fastLAPACK) EigenSingle(a []float32, n int) ([]float32, bool) {
	values := make([]float32, n)
	if n == 0 {
		return values, true
	}
	checkSize("A", a, n, n, n)
	work, iwork := make([]float32, 1+6*n+2*n*n), make([]int32, 3+5*n)
	var info int32
	f.lib.ssyevd(charPtr(lapack.EVCompute), flipUplo(blas.Upper), int32Ptr(n), &a[0], int32Ptr(n), &values[0], &work[0], int32Ptr(len(work)), &iwork[0], int32Ptr(len(iwork)), &info, charLen, charLen)
	return values, info == 0
}

// Dgesvd computes the singular value decomposition A = U S Vᵀ of an m x n matrix. It uses LAPACK's
// dgesdd if U and Vᵀ are wanted in the same form, or neither is. In other cases, and where dgesdd
// does not converge, as happens with singular matrices, it uses gonum's code.
func (f fastLAPACK) Dgesvd(jobU, jobVT lapack.SVDJob, m, n int, a []float64, lda int, s, u []float64, ldu int, vt []float64, ldvt int, work []float64, lwork int) (ok bool) {
	if jobU != jobVT || jobU == lapack.SVDOverwrite || min(m, n) == 0 || lwork == -1 {
		return f.Implementation.Dgesvd(jobU, jobVT, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork)
	}
	checkSize("A", a, m, n, lda)
	checkSize("the singular values", s, 1, min(m, n), min(m, n))
	var unused float64
	pu, pvt := &unused, &unused
	if jobU != lapack.SVDNone {
		urows, vrows := m, n
		if jobU == lapack.SVDStore {
			vrows = min(m, n)
			checkSize("U", u, urows, min(m, n), ldu)
		} else {
			checkSize("U", u, urows, m, ldu)
		}
		checkSize("Vᵀ", vt, vrows, n, ldvt)
		pu, pvt = &u[0], &vt[0]
	}
	// In column-major order, a holds Aᵀ = V S Uᵀ. So dgesdd's U is V, which in memory equals a
	// row-major Vᵀ, and its Vᵀ is Uᵀ, which equals a row-major U.
	job := charPtr(jobU)
	iwork := make([]int32, 8*min(m, n))
	var info int32
	var size float64
	call := func(work *float64, lwork int) {
		f.lib.dgesdd(job, int32Ptr(n), int32Ptr(m), &a[0], int32Ptr(lda), &s[0], pvt, int32Ptr(ldvt), pu, int32Ptr(ldu), work, int32Ptr(lwork), &iwork[0], &info, charLen)
	}
	given := slices.Clone(a) // dgesdd overwrites a
	call(&size, -1)
	if info == 0 {
		own := make([]float64, int(size))
		call(&own[0], len(own))
	}
	if info <= 0 {
		return info == 0
	}
	copy(a, given)
	need := make([]float64, 1)
	f.Implementation.Dgesvd(jobU, jobVT, m, n, a, lda, s, u, ldu, vt, ldvt, need, -1)
	own := make([]float64, int(need[0]))
	return f.Implementation.Dgesvd(jobU, jobVT, m, n, a, lda, s, u, ldu, vt, ldvt, own, len(own))
}
