package linalg

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
)

// A Block holds n observations of p variables, centred on their mean. They are in float32, or in
// float64 for moments whose smallest eigenvalues matter.
type Block struct {
	n, p   int
	stride int       // values between one observation and the next
	rows   []float32 // n x p
	wide   []float64 // n x p in float64, instead of rows
	mean   []float64 // p values: the mean that was subtracted
}

// A Scratch is memory for products that successive calls reuse. The zero Scratch is ready to use.
// It grows to ScratchSize.
type Scratch struct {
	products []float32
	wide     []float64
}

// tile is the side of the square tiles in which products are computed. The tiles are large enough
// for products to run at full speed, and small enough to stay in the cache until they are added in
// float64.
const tile = 1024

// Values returns n values of undefined contents. They are valid until the scratch is used again.
func (s *Scratch) Values(n int) []float32 { return grow(&s.products, n) }

// ScratchSize returns the bytes of a Scratch for blocks of p variables in float32.
func ScratchSize(p int) int64 {
	side := int64(min(p, tile))
	return 4 * side * side
}

// grow returns n values of a slice, which it reallocates if it is too small. Their contents are
// undefined.
func grow[T float32 | float64](s *[]T, n int) []T {
	if cap(*s) < n {
		*s = make([]T, n)
	}
	return (*s)[:n]
}

// Centre subtracts the mean from observations in place and returns them as a block. rows is n x p,
// row-major. The mean has NaN or infinity if and only if the observations do.
func Centre(rows []float32, p int) Block {
	return Block{n: len(rows) / p, p: p, stride: p, rows: rows, mean: centre(rows, p)}
}

// CentreWide is Centre for observations in float64.
func CentreWide(rows []float64, p int) Block {
	return Block{n: len(rows) / p, p: p, stride: p, wide: rows, mean: centre(rows, p)}
}

// CentreSummed is Centre for observations whose sum over rows is known; see SumRows.
func CentreSummed(rows []float32, sum []float64) Block {
	p := len(sum)
	mean := takeMean(rows, append([]float64(nil), sum...))
	return Block{n: len(rows) / p, p: p, stride: p, rows: rows, mean: mean}
}

func centre[T float32 | float64](rows []T, p int) []float64 {
	sum := make([]float64, p)
	SumRows(sum, rows)
	return takeMean(rows, sum)
}

// takeMean replaces the sum of rows by their mean, and subtracts it from each row.
func takeMean[T float32 | float64](rows []T, sum []float64) (mean []float64) {
	p := len(sum)
	n := len(rows) / p
	rounded := make([]T, p)
	for j := range sum {
		sum[j] /= float64(n)
		rounded[j] = T(sum[j])
	}
	for i := range n {
		row := rows[i*p : (i+1)*p]
		for j := range row {
			row[j] -= rounded[j]
		}
	}
	return sum
}

// SumRows adds the rows of a matrix of len(sum) columns to sum. NaN and infinity carry over to the
// sum.
func SumRows[T float32 | float64](sum []float64, rows []T) {
	p := len(sum)
	for ; len(rows) >= 4*p; rows = rows[4*p:] {
		a, b, c, d := rows[:p], rows[p:2*p], rows[2*p:3*p], rows[3*p:4*p]
		for j := range sum {
			sum[j] += float64(a[j]) + float64(b[j]) + float64(c[j]) + float64(d[j])
		}
	}
	for ; len(rows) >= p; rows = rows[p:] {
		for j, v := range rows[:p] {
			sum[j] += float64(v)
		}
	}
}

// N returns the number of observations.
func (b Block) N() int { return b.n }

// Mean returns the mean that was subtracted: p values.
func (b Block) Mean() []float64 { return b.mean }

// Columns returns the block of the variables lo to hi (exclusive). It shares memory with b.
func (b Block) Columns(lo, hi int) Block {
	out := Block{n: b.n, p: hi - lo, stride: b.stride, mean: b.mean[lo:hi]}
	if b.wide != nil {
		out.wide = b.wide[lo:]
	} else {
		out.rows = b.rows[lo:]
	}
	return out
}

// Permuted returns a block of the same observations in another order: observation i is that at
// order[i]. The order must be a permutation. With a block of other variables it forms shuffled
// pairs.
func (b Block) Permuted(order []int) Block {
	out := b
	out.stride, out.rows, out.wide = b.p, permuted(b.rows, b, order), permuted(b.wide, b, order)
	return out
}

func permuted[T any](rows []T, b Block, order []int) []T {
	if rows == nil {
		return nil
	}
	out := make([]T, b.n*b.p)
	for i, from := range order {
		copy(out[i*b.p:(i+1)*b.p], rows[from*b.stride:from*b.stride+b.p])
	}
	return out
}

// Add adds a block to a scatter and, unless part is nil, to part as well. The products are computed
// once.
func (s *Scatter[T]) Add(b Block, part *Scatter[float32], scratch *Scratch) {
	all := s.Begin(b.n, b.mean)
	var own Update[float32]
	if part != nil {
		own = part.Begin(b.n, b.mean)
	}
	for top := 0; top < s.P; top += tile {
		bottom := min(top+tile, s.P)
		for left := top; left < s.P; left += tile {
			right := min(left+tile, s.P)
			if b.wide != nil {
				products := b.productsWide(top, bottom, left, right, scratch)
				AddProducts(all, products, top, bottom, left, right)
				AddProducts(own, products, top, bottom, left, right)
			} else {
				products := b.Products(top, bottom, left, right, scratch)
				AddProducts(all, products, top, bottom, left, right)
				AddProducts(own, products, top, bottom, left, right)
			}
		}
	}
	all.End()
	own.End()
}

// Products returns the products of the variables top to bottom (exclusive) with the variables left
// to right (exclusive), summed over observations in float32. Tiles on the diagonal have only their
// upper triangle. The result is valid until scratch is used again.
func (b Block) Products(top, bottom, left, right int, scratch *Scratch) []float32 {
	rows := bottom - top
	if top != left {
		return multiply(b, b, top, rows, left, right-left, scratch)
	}
	products := scratch.Values(rows * rows)
	x := blas32.General{Rows: b.n, Cols: rows, Stride: b.stride, Data: b.rows[top:]}
	blas32.Syrk(blas.Trans, 1, x, 0, blas32.Symmetric{Uplo: blas.Upper, N: rows, Stride: rows, Data: products})
	return products
}

// productsWide is Products in float64.
func (b Block) productsWide(top, bottom, left, right int, scratch *Scratch) []float64 {
	rows := bottom - top
	if top != left {
		return multiplyWide(b, b, top, rows, left, right-left, scratch)
	}
	products := grow(&scratch.wide, rows*rows)
	x := blas64.General{Rows: b.n, Cols: rows, Stride: b.stride, Data: b.wide[top:]}
	blas64.Syrk(blas.Trans, 1, x, 0, blas64.Symmetric{Uplo: blas.Upper, N: rows, Stride: rows, Data: products})
	return products
}
