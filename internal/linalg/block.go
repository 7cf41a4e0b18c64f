package linalg

import (
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"
)

// A Block holds n observations of p variables, centred on their mean. Use float64 if the smallest
// eigenvalues of their scatter matrix must be accurate, and float32 otherwise.
type Block struct {
	n, p   int
	stride int       // distance between successive observations, in values
	rows   []float32 // n x p
	rows64 []float64 // n x p in float64, instead of rows
	mean   []float64 // p values: the mean that was subtracted
}

// A Scratch is memory for products of variables, which successive calls reuse. The zero Scratch is
// ready to use. It grows to ScratchSize bytes for blocks in float32, and to twice as much for
// blocks in float64.
type Scratch struct {
	products   []float32
	products64 []float64
}

// tile is the side of the square tiles in which the matrix of products is computed. The tiles are
// large enough for products to run at full speed, and small enough to stay in the cache until they
// are added in float64.
const tile = 1024

// Values returns a slice of n values of undefined contents. It is valid until s is used again.
func (s *Scratch) Values(n int) []float32 { return grow(&s.products, n) }

// ScratchSize returns the size in bytes of a Scratch for blocks of p variables in float32.
func ScratchSize(p int) int64 {
	side := int64(min(p, tile))
	return 4 * side * side
}

// grow returns the first n values of a slice, which it reallocates if it is too small. Their
// contents are undefined.
func grow[T float32 | float64](s *[]T, n int) []T {
	if cap(*s) < n {
		*s = make([]T, n)
	}
	return (*s)[:n]
}

// Centre subtracts the mean from observations in place and returns them as a block, which shares
// the memory of rows. rows is n x p, row-major. The mean of a variable is NaN or infinite if and
// only if one of its observations is.
func Centre(rows []float32, p int) Block {
	return Block{n: len(rows) / p, p: p, stride: p, rows: rows, mean: centre(rows, p)}
}

// Centre64 is Centre for observations in float64.
func Centre64(rows []float64, p int) Block {
	return Block{n: len(rows) / p, p: p, stride: p, rows64: rows, mean: centre(rows, p)}
}

// CentreSummed is Centre for observations whose sum over rows is known, as from SumRows. It does
// not change sum.
func CentreSummed(rows []float32, sum []float64) Block {
	p := len(sum)
	mean := subtractMean(rows, append([]float64(nil), sum...))
	return Block{n: len(rows) / p, p: p, stride: p, rows: rows, mean: mean}
}

// centre subtracts the mean from rows of p values in place, and returns it.
func centre[T float32 | float64](rows []T, p int) []float64 {
	sum := make([]float64, p)
	SumRows(sum, rows)
	return subtractMean(rows, sum)
}

// subtractMean replaces sum, the sum of rows, by their mean, and subtracts it from each row.
func subtractMean[T float32 | float64](rows []T, sum []float64) (mean []float64) {
	p := len(sum)
	n := len(rows) / p
	rounded := make([]T, p)
	for j := range sum {
		sum[j] /= float64(n)
		rounded[j] = T(sum[j])
	}
	subtract(rows, rounded)
	return sum
}

func subtract[T float32 | float64](rows, b []T) {
	n, p := len(rows)/len(b), len(b)
	ones := slices.Repeat([]T{1}, n)
	switch rows := any(rows).(type) {
	case []float32:
		blas32.Ger(-1, blas32.Vector{N: n, Inc: 1, Data: any(ones).([]float32)}, blas32.Vector{N: p, Inc: 1, Data: any(b).([]float32)},
			blas32.General{Rows: n, Cols: p, Stride: p, Data: rows})
	case []float64:
		blas64.Ger(-1, blas64.Vector{N: n, Inc: 1, Data: any(ones).([]float64)}, blas64.Vector{N: p, Inc: 1, Data: any(b).([]float64)},
			blas64.General{Rows: n, Cols: p, Stride: p, Data: rows})
	}
}

// SumRows adds the rows of a matrix of len(sum) columns to sum. For a column with NaN or infinity
// the sum is NaN or infinite.
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
	if b.rows64 != nil {
		out.rows64 = b.rows64[lo:]
	} else {
		out.rows = b.rows[lo:]
	}
	return out
}

// Permuted returns a copy whose observation i is observation order[i] of b. order must be a
// permutation of 0 to n - 1. If b holds y of pairs (x, y), x and the copy are shuffled pairs,
// whose x and y are of unrelated observations.
func (b Block) Permuted(order []int) Block {
	out := b
	out.stride, out.rows, out.rows64 = b.p, permuted(b.rows, b, order), permuted(b.rows64, b, order)
	return out
}

// permuted returns the observations of b in the given order. rows are the values of b in one
// precision; if they are nil, so is the result.
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

// Add adds a block of s.P variables to s, the sums of the products of their deviations from the
// mean, and, unless it is nil, to part, such as the scatter of one jackknife group of the samples.
// The products are computed once for both.
func (s *Scatter[T]) Add(b Block, part *Scatter[float32], scratch *Scratch) {
	update := s.Begin(b.n, b.mean)
	var partUpdate Update[float32] // the zero value has no effect
	if part != nil {
		partUpdate = part.Begin(b.n, b.mean)
	}
	for top := 0; top < s.P; top += tile {
		bottom := min(top+tile, s.P)
		for left := top; left < s.P; left += tile {
			right := min(left+tile, s.P)
			if b.rows64 != nil {
				products := b.products64(top, bottom, left, right, scratch)
				AddProducts(update, products, top, bottom, left, right)
				AddProducts(partUpdate, products, top, bottom, left, right)
			} else {
				products := b.Products(top, bottom, left, right, scratch)
				AddProducts(update, products, top, bottom, left, right)
				AddProducts(partUpdate, products, top, bottom, left, right)
			}
		}
	}
	update.End()
	partUpdate.End()
}

// Products returns the products of the variables top to bottom (exclusive) with the variables left
// to right (exclusive), summed over observations in float32: (bottom - top) x (right - left),
// row-major. If top equals left, bottom must equal right, and only the upper triangle is computed.
// The result is valid until scratch is used again.
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

// products64 is Products for a block in float64.
func (b Block) products64(top, bottom, left, right int, scratch *Scratch) []float64 {
	rows := bottom - top
	if top != left {
		return multiply64(b, b, top, rows, left, right-left, scratch)
	}
	products := grow(&scratch.products64, rows*rows)
	x := blas64.General{Rows: b.n, Cols: rows, Stride: b.stride, Data: b.rows64[top:]}
	blas64.Syrk(blas.Trans, 1, x, 0, blas64.Symmetric{Uplo: blas.Upper, N: rows, Stride: rows, Data: products})
	return products
}
