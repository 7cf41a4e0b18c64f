package linalg

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/noether-ml/noether/internal/state"
)

// A CrossScatter holds the sums, over observations, of the products of P variables x with Q
// variables y, each centred on its mean. The sums of products within x and within y are not in it:
// each is a Scatter, computed only once where several x are compared with several y. T is the
// precision of the sums.
type CrossScatter[T float32 | float64] struct {
	P, Q         int       // numbers of variables
	N            int       // number of observations
	MeanX, MeanY []float64 // P and Q values
	Data         []T       // sum (x - mean x)(y - mean y)ᵀ: P x Q, row-major
}

// NewCrossScatter returns a CrossScatter of p and q variables without observations.
func NewCrossScatter[T float32 | float64](p, q int) *CrossScatter[T] {
	return &CrossScatter[T]{P: p, Q: q, MeanX: make([]float64, p), MeanY: make([]float64, q), Data: make([]T, p*q)}
}

// Add adds the observations of a block (centred observations) of x and one of y to c and, unless it
// is nil, to part, such as the CrossScatter of one fold. The products are computed once for both,
// in square tiles of side tile, which stay in the cache. Add panics if the numbers of variables or
// observations do not match, or if only one block is in float64.
func (c *CrossScatter[T]) Add(x, y Block, part *CrossScatter[float32], scratch *Scratch) {
	if x.p != c.P || y.p != c.Q || x.n != y.n || (x.rows64 == nil) != (y.rows64 == nil) {
		panic(fmt.Sprintf("linalg: adding blocks of %d x %d and %d x %d to a scatter between %d and %d variables", x.n, x.p, y.n, y.p, c.P, c.Q))
	}
	update := c.Begin(x.n, x.mean, y.mean)
	var partUpdate CrossUpdate[float32] // the zero value has no effect
	if part != nil {
		partUpdate = part.Begin(x.n, x.mean, y.mean)
	}
	for top := 0; top < c.P; top += tile {
		bottom := min(top+tile, c.P)
		for left := 0; left < c.Q; left += tile {
			right := min(left+tile, c.Q)
			if x.rows64 != nil {
				products := multiply64(x, y, top, bottom-top, left, right-left, scratch)
				AddCrossProducts(update, products, top, bottom, left, right)
				AddCrossProducts(partUpdate, products, top, bottom, left, right)
			} else {
				products := multiply(x, y, top, bottom-top, left, right-left, scratch)
				AddCrossProducts(update, products, top, bottom, left, right)
				AddCrossProducts(partUpdate, products, top, bottom, left, right)
			}
		}
	}
	update.End()
	partUpdate.End()
}

// multiply returns the products of rows variables of x, from variable top on, with cols variables
// of y, from variable left on, summed over observations: rows x cols. The result is valid until
// scratch is used again.
func multiply(x, y Block, top, rows, left, cols int, scratch *Scratch) []float32 {
	products := scratch.Values(rows * cols)
	a := blas32.General{Rows: x.n, Cols: rows, Stride: x.stride, Data: x.rows[top:]}
	b := blas32.General{Rows: y.n, Cols: cols, Stride: y.stride, Data: y.rows[left:]}
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, a, b, 0, blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: products})
	return products
}

// multiply64 is multiply for blocks in float64.
func multiply64(x, y Block, top, rows, left, cols int, scratch *Scratch) []float64 {
	products := grow(&scratch.products64, rows*cols)
	a := blas64.General{Rows: x.n, Cols: rows, Stride: x.stride, Data: x.rows64[top:]}
	b := blas64.General{Rows: y.n, Cols: cols, Stride: y.stride, Data: y.rows64[left:]}
	blas64.Gemm(blas.Trans, blas.NoTrans, 1, a, b, 0, blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: products})
	return products
}

// Merge adds the observations of another CrossScatter of the same variables. It panics if the
// variables differ.
func (c *CrossScatter[T]) Merge(o *CrossScatter[T]) {
	if c.P != o.P || c.Q != o.Q {
		panic(fmt.Sprintf("linalg: merging scatters between %d and %d variables and %d and %d", c.P, c.Q, o.P, o.Q))
	}
	u := c.Begin(o.N, o.MeanX, o.MeanY)
	AddCrossProducts(u, o.Data, 0, c.P, 0, c.Q)
	u.End()
}

// Clone returns a copy that shares no memory with c.
func (c *CrossScatter[T]) Clone() *CrossScatter[T] {
	out := NewCrossScatter[T](c.P, c.Q)
	out.N = c.N
	copy(out.MeanX, c.MeanX)
	copy(out.MeanY, c.MeanY)
	copy(out.Data, c.Data)
	return out
}

// Code writes the scatter to a state, or replaces it by one of the same numbers of variables from a
// state.
func (c *CrossScatter[T]) Code(s *state.Codec) {
	if s.Len(&c.N, math.MaxInt) > 0 {
		s.Values(c.MeanX, c.MeanY, c.Data)
	} else if s.Reads() {
		clear(c.MeanX)
		clear(c.MeanY)
		clear(c.Data)
	}
}
