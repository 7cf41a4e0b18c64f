package linalg

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/mat"
)

// fastLAPACK is gonum's LAPACK with some decompositions of a library, which uses divide and conquer
// instead of QR iterations.
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
	fits("A", a, n, n, lda)
	var info int32
	f.lib.dpotrf(flip(ul), i32(n), &a[0], i32(lda), &info, charLen)
	return info == 0
}

// Dsyev computes the eigenvalues of a symmetric matrix in ascending order and, with EVCompute, its
// eigenvectors as the columns of a. It is LAPACK's dsyevd. Workspace that is too short for dsyevd
// is replaced.
func (f fastLAPACK) Dsyev(jobz lapack.EVJob, ul blas.Uplo, n int, a []float64, lda int, w, work []float64, lwork int) (ok bool) {
	lw, li := 2*n+1, 1
	if jobz == lapack.EVCompute {
		lw, li = 1+6*n+2*n*n, 3+5*n
	}
	if lwork == -1 {
		work[0] = float64(lw)
		return true
	}
	if n == 0 {
		return true
	}
	fits("A", a, n, n, lda)
	fits("the eigenvalues", w, 1, n, n)
	if len(work) < lw {
		work = make([]float64, lw)
	}
	var info int32
	f.lib.dsyevd(letter(jobz), flip(ul), i32(n), &a[0], i32(lda), &w[0], &work[0], i32(lw), &make([]int32, li)[0], i32(li), &info, charLen, charLen)
	if jobz == lapack.EVCompute {
		transpose(a, n, lda)
	}
	return info == 0
}

// leading is leadingOfAll without the work for the other eigenvectors. It reduces the matrix to
// tridiagonal form, solves that by divide and conquer, and transforms only the wanted eigenvectors
// back. Unlike LAPACK's dsyevd it does not scale matrices with numbers above 1e146 or below 1e-146.
// Sums of squares in float32 have no such numbers.
func (f fastLAPACK) leading(a []float64, n int, count func(values []float64) int) (values []float64, vectors *mat.Dense, err error) {
	fits("A", a, n, n, n)
	values, z, work := make([]float64, n), make([]float64, n*n), make([]float64, n*n+64*n)
	sub, tau, iwork := make([]float64, n), make([]float64, n), make([]int32, 3+5*n)
	lwork := i32(len(work))
	var info int32
	f.lib.dsytrd(flip(blas.Upper), i32(n), &a[0], i32(n), &values[0], &sub[0], &tau[0], &work[0], lwork, &info, charLen)
	if info == 0 {
		f.lib.dstedc(letter(lapack.EVTridiag), i32(n), &values[0], &sub[0], &z[0], i32(n), &work[0], lwork, &iwork[0], i32(len(iwork)), &info, charLen)
	}
	if info != 0 {
		return nil, nil, fmt.Errorf("eigenvectors of a symmetric %d x %d matrix: %w", n, n, ErrNotConverged)
	}
	k := count(reversed(values))
	if k == 0 {
		return values, nil, nil
	}
	z = z[(n-k)*n:] // the columns of the k largest
	if n > 1 {
		f.lib.dormqr(letter(blas.Left), letter(blas.NoTrans), i32(n-1), i32(k), i32(n-1), &a[1], i32(n), &tau[0], &z[1], i32(n), &work[0], lwork, &info, charLen, charLen)
	}
	return values, columns(z, n, k), nil
}

// columns returns the n x k matrix whose columns are the k rows, the last one first. It works in
// tiles that fit the cache.
func columns(rows []float64, n, k int) *mat.Dense {
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

// cholesky implements singleLAPACK.
func (f fastLAPACK) cholesky(a []float32, n, stride int) bool {
	if n == 0 {
		return true
	}
	fits("A", a, n, n, stride)
	var info int32
	f.lib.spotrf(flip(blas.Upper), i32(n), &a[0], i32(stride), &info, charLen)
	return info == 0
}

// eigen implements singleLAPACK. The columns of the library are the rows here.
func (f fastLAPACK) eigen(a []float32, n int) ([]float32, bool) {
	values := make([]float32, n)
	if n == 0 {
		return values, true
	}
	fits("A", a, n, n, n)
	work, iwork := make([]float32, 1+6*n+2*n*n), make([]int32, 3+5*n)
	var info int32
	f.lib.ssyevd(letter(lapack.EVCompute), flip(blas.Upper), i32(n), &a[0], i32(n), &values[0], &work[0], i32(len(work)), &iwork[0], i32(len(iwork)), &info, charLen, charLen)
	return values, info == 0
}

// transpose transposes a square matrix in place, in tiles that fit the cache.
func transpose(a []float64, n, lda int) {
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

// Dgesvd computes the singular value decomposition A = U S Vᵀ of an m x n matrix. It uses LAPACK's
// dgesdd if both or neither of U and Vᵀ are wanted, and gonum's code otherwise.
func (f fastLAPACK) Dgesvd(jobU, jobVT lapack.SVDJob, m, n int, a []float64, lda int, s, u []float64, ldu int, vt []float64, ldvt int, work []float64, lwork int) (ok bool) {
	if jobU != jobVT || jobU == lapack.SVDOverwrite || min(m, n) == 0 || lwork == -1 {
		return f.Implementation.Dgesvd(jobU, jobVT, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork)
	}
	fits("A", a, m, n, lda)
	fits("the singular values", s, 1, min(m, n), min(m, n))
	var none float64
	pu, pvt := &none, &none
	if jobU != lapack.SVDNone {
		urows, vrows := m, n
		if jobU == lapack.SVDStore {
			vrows = min(m, n)
			fits("U", u, urows, min(m, n), ldu)
		} else {
			fits("U", u, urows, m, ldu)
		}
		fits("Vᵀ", vt, vrows, n, ldvt)
		pu, pvt = &u[0], &vt[0]
	}
	// In column-major order, a holds Aᵀ = V S Uᵀ. So dgesdd's U is V, which in memory equals a
	// row-major Vᵀ, and its Vᵀ is Uᵀ, which equals a row-major U.
	job := letter(jobU)
	iwork := make([]int32, 8*min(m, n))
	var info int32
	var want float64
	call := func(work *float64, lwork int) {
		f.lib.dgesdd(job, i32(n), i32(m), &a[0], i32(lda), &s[0], pvt, i32(ldvt), pu, i32(ldu), work, i32(lwork), &iwork[0], &info, charLen)
	}
	call(&want, -1)
	if info == 0 {
		work = make([]float64, int(want))
		call(&work[0], len(work))
	}
	return info == 0
}
