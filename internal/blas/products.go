package blas

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// fastBLAS is gonum's BLAS with some level-3 operations replaced by those of a library.
//
// gonum's matrices are row-major, and those of the library column-major. In memory, a row-major
// matrix equals its transpose in column-major order. So the library is called for the transpose of
// each operation: the operands of a product are swapped, upper becomes lower, and left becomes
// right.
//
// The methods have the names and arguments of BLAS: op(A) is A or its transpose, and lda, ldb and
// ldc are the strides (distances between rows) of A, B and C.
type fastBLAS struct {
	gonum.Implementation
	lib *library
}

// charLen is the length of each character argument. Fortran functions take it as a hidden argument.
const charLen = 1

// checkSize panics, as gonum does, for a negative size, for a stride below the number of columns,
// and if a slice is shorter than its row-major matrix. The library would write beyond its end.
func checkSize[T any](what string, data []T, rows, cols, stride int) {
	switch {
	case rows < 0 || cols < 0:
		panic(fmt.Sprintf("blas: %s is %d x %d", what, rows, cols))
	case stride < max(1, cols):
		panic(fmt.Sprintf("blas: the stride of %s is %d for %d columns", what, stride, cols))
	case rows > 0 && cols > 0 && len(data) < (rows-1)*stride+cols:
		panic(fmt.Sprintf("blas: %s has %d values, too few for %d x %d", what, len(data), rows, cols))
	}
}

// storedShape returns the shape of the stored matrix A if op(A) is rows x cols.
func storedShape(t blas.Transpose, rows, cols int) (int, int) {
	if t == blas.NoTrans {
		return rows, cols
	}
	return cols, rows
}

// flipUplo, flipSide and flipTranspose return the argument for the transposed operation.
func flipUplo(ul blas.Uplo) *byte {
	f := byte(blas.Upper)
	if ul == blas.Upper {
		f = byte(blas.Lower)
	}
	return &f
}

func flipSide(s blas.Side) *byte {
	f := byte(blas.Left)
	if s == blas.Left {
		f = byte(blas.Right)
	}
	return &f
}

func flipTranspose(t blas.Transpose) *byte {
	f := byte(blas.NoTrans)
	if t == blas.NoTrans {
		f = byte(blas.Trans)
	}
	return &f
}

func charPtr[T ~byte](c T) *byte {
	b := byte(c)
	return &b
}

func int32Ptr(n int) *int32 {
	v := int32(n)
	return &v
}

// Dgemm computes C = alpha op(A) op(B) + beta C, C: m x n, op(A): m x k.
func (f fastBLAS) Dgemm(ta, tb blas.Transpose, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	if m == 0 || n == 0 || k == 0 {
		f.Implementation.Dgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	checkProductSizes(ta, tb, m, n, k, a, lda, b, ldb, c, ldc)
	f.lib.dgemm(charPtr(tb), charPtr(ta), int32Ptr(n), int32Ptr(m), int32Ptr(k), &alpha, &b[0], int32Ptr(ldb), &a[0], int32Ptr(lda), &beta, &c[0], int32Ptr(ldc), charLen, charLen)
}

// Sgemm is Dgemm in float32.
func (f fastBLAS) Sgemm(ta, tb blas.Transpose, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	if m == 0 || n == 0 || k == 0 {
		f.Implementation.Sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
		return
	}
	checkProductSizes(ta, tb, m, n, k, a, lda, b, ldb, c, ldc)
	f.lib.sgemm(charPtr(tb), charPtr(ta), int32Ptr(n), int32Ptr(m), int32Ptr(k), &alpha, &b[0], int32Ptr(ldb), &a[0], int32Ptr(lda), &beta, &c[0], int32Ptr(ldc), charLen, charLen)
}

// checkProductSizes checks the slices of a product: op(A) is m x k, op(B) k x n, and C m x n.
func checkProductSizes[T any](ta, tb blas.Transpose, m, n, k int, a []T, lda int, b []T, ldb int, c []T, ldc int) {
	rows, cols := storedShape(ta, m, k)
	checkSize("A", a, rows, cols, lda)
	rows, cols = storedShape(tb, k, n)
	checkSize("B", b, rows, cols, ldb)
	checkSize("C", c, m, n, ldc)
}

// Dsyrk computes one triangle of C = alpha op(A) op(A)ᵀ + beta C, C: n x n, op(A): n x k.
func (f fastBLAS) Dsyrk(ul blas.Uplo, t blas.Transpose, n, k int, alpha float64, a []float64, lda int, beta float64, c []float64, ldc int) {
	if n == 0 || k == 0 {
		f.Implementation.Dsyrk(ul, t, n, k, alpha, a, lda, beta, c, ldc)
		return
	}
	rows, cols := storedShape(t, n, k)
	checkSize("A", a, rows, cols, lda)
	checkSize("C", c, n, n, ldc)
	f.lib.dsyrk(flipUplo(ul), flipTranspose(t), int32Ptr(n), int32Ptr(k), &alpha, &a[0], int32Ptr(lda), &beta, &c[0], int32Ptr(ldc), charLen, charLen)
}

// Ssyrk is Dsyrk in float32.
func (f fastBLAS) Ssyrk(ul blas.Uplo, t blas.Transpose, n, k int, alpha float32, a []float32, lda int, beta float32, c []float32, ldc int) {
	if n == 0 || k == 0 {
		f.Implementation.Ssyrk(ul, t, n, k, alpha, a, lda, beta, c, ldc)
		return
	}
	rows, cols := storedShape(t, n, k)
	checkSize("A", a, rows, cols, lda)
	checkSize("C", c, n, n, ldc)
	f.lib.ssyrk(flipUplo(ul), flipTranspose(t), int32Ptr(n), int32Ptr(k), &alpha, &a[0], int32Ptr(lda), &beta, &c[0], int32Ptr(ldc), charLen, charLen)
}

// Dtrsm solves op(A) X = alpha B, or X op(A) = alpha B, for triangular A. X overwrites B: m x n.
func (f fastBLAS) Dtrsm(s blas.Side, ul blas.Uplo, ta blas.Transpose, d blas.Diag, m, n int, alpha float64, a []float64, lda int, b []float64, ldb int) {
	trsm(f.lib.dtrsm, s, ul, ta, d, m, n, alpha, a, lda, b, ldb)
}

// Strsm is Dtrsm in float32.
func (f fastBLAS) Strsm(s blas.Side, ul blas.Uplo, ta blas.Transpose, d blas.Diag, m, n int, alpha float32, a []float32, lda int, b []float32, ldb int) {
	trsm(f.lib.strsm, s, ul, ta, d, m, n, alpha, a, lda, b, ldb)
}

// trsm is Dtrsm by the function f of the library.
func trsm[T any](f trsmFunc[T], s blas.Side, ul blas.Uplo, ta blas.Transpose, d blas.Diag, m, n int, alpha T, a []T, lda int, b []T, ldb int) {
	if m == 0 || n == 0 {
		return
	}
	order := m
	if s == blas.Right {
		order = n
	}
	checkSize("A", a, order, order, lda)
	checkSize("B", b, m, n, ldb)
	f(flipSide(s), flipUplo(ul), charPtr(ta), charPtr(d), int32Ptr(n), int32Ptr(m), &alpha, &a[0], int32Ptr(lda), &b[0], int32Ptr(ldb), charLen, charLen, charLen, charLen)
}
