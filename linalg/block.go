package linalg

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
)

// A Block holds n observations of p variables, centred on their mean and ready to be multiplied. They are in
// float32, or in float64 for moments whose smallest eigenvalues matter.
type Block struct {
	n, p   int
	stride int       // values between one observation and the next
	rows   []float32 // n x p
	wide   []float64 // n x p in float64, in place of rows
	mean   []float64 // p: what was subtracted
}

// A Scratch is memory for products that calls share one after another. The zero Scratch is ready. It grows to
// ScratchSize.
type Scratch struct {
	products []float32
	wide     []float64
}

// tile is the side of the square tiles that products are computed in. It is large enough for a product to run at
// full speed, and small enough for the products to stay in the cache until they are added in float64.
const tile = 1024

// Values returns n values of undefined contents, which are valid until the scratch is used again.
func (s *Scratch) Values(n int) []float32 { return grow(&s.products, n) }

// ScratchSize returns the bytes of a Scratch for blocks of p variables in float32.
func ScratchSize(p int) int64 {
	side := int64(min(p, tile))
	return 4 * side * side
}

// grow returns n values of a slice, reallocated where it is too small. Their contents are undefined.
func grow[T float32 | float64](s *[]T, n int) []T {
	if cap(*s) < n {
		*s = make([]T, n)
	}
	return (*s)[:n]
}

// Centre subtracts the mean from observations, in place, and returns them as a block. rows is n x p, row-major.
// The mean holds NaN or infinity if and only if the observations do.
func Centre(rows []float32, p int) Block {
	return Block{n: len(rows) / p, p: p, stride: p, rows: rows, mean: centre(rows, p)}
}

// CentreWide is Centre for observations that are to be multiplied in float64.
func CentreWide(rows []float64, p int) Block {
	return Block{n: len(rows) / p, p: p, stride: p, wide: rows, mean: centre(rows, p)}
}

// CentreSummed is Centre for observations whose sum over rows is known. See SumRows.
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

// takeMean turns the sum of rows into their mean and subtracts that from each.
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

// SumRows adds the rows of a matrix of len(sum) columns to sum. The sum then holds NaN or infinity if it did or if
// the matrix does.
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

// Columns returns the block of the variables lo to hi (exclusive). It shares the memory of b.
func (b Block) Columns(lo, hi int) Block {
	out := Block{n: b.n, p: hi - lo, stride: b.stride, mean: b.mean[lo:hi]}
	if b.wide != nil {
		out.wide = b.wide[lo:]
	} else {
		out.rows = b.rows[lo:]
	}
	return out
}

// Permuted returns a block of the same observations in another order: observation i is the one at order[i]. The order
// must be a permutation. Paired with the block of other variables it stands for pairs that do not belong together.
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

// Add adds a block to a scatter and, if part is not nil, to part as well, for one computation of the products.
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

// Products returns the products of the variables top to bottom with the variables left to right, summed over
// observations in float32. Tiles on the diagonal have their upper triangle alone. The result is valid until scratch
// is used again.
func (b Block) Products(top, bottom, left, right int, scratch *Scratch) []float32 {
	rows, cols := bottom-top, right-left
	products := scratch.Values(rows * cols)
	x := blas32.General{Rows: b.n, Cols: rows, Stride: b.stride, Data: b.rows[top:]}
	if top == left {
		blas32.Syrk(blas.Trans, 1, x, 0, blas32.Symmetric{Uplo: blas.Upper, N: rows, Stride: rows, Data: products})
		return products
	}
	y := blas32.General{Rows: b.n, Cols: cols, Stride: b.stride, Data: b.rows[left:]}
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, x, y, 0, blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: products})
	return products
}

// productsWide is Products in float64.
func (b Block) productsWide(top, bottom, left, right int, scratch *Scratch) []float64 {
	rows, cols := bottom-top, right-left
	products := grow(&scratch.wide, rows*cols)
	x := blas64.General{Rows: b.n, Cols: rows, Stride: b.stride, Data: b.wide[top:]}
	if top == left {
		blas64.Syrk(blas.Trans, 1, x, 0, blas64.Symmetric{Uplo: blas.Upper, N: rows, Stride: rows, Data: products})
		return products
	}
	y := blas64.General{Rows: b.n, Cols: cols, Stride: b.stride, Data: b.wide[left:]}
	blas64.Gemm(blas.Trans, blas.NoTrans, 1, x, y, 0, blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: products})
	return products
}
