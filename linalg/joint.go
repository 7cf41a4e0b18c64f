package linalg

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/noether-ml/noether/internal/state"
)

// A Joint is the scatter between P variables x and Q variables y of the same observations. The
// Scatter of x and that of y are separate, so that with several x and y each is computed once. T is
// the precision of the sums.
type Joint[T float32 | float64] struct {
	P, Q         int
	N            int
	MeanX, MeanY []float64
	Data         []T // sum (x - mean x)(y - mean y)ᵀ: P x Q, row-major
}

// NewJoint returns the scatter of no observations of p and q variables.
func NewJoint[T float32 | float64](p, q int) *Joint[T] {
	return &Joint[T]{P: p, Q: q, MeanX: make([]float64, p), MeanY: make([]float64, q), Data: make([]T, p*q)}
}

// Add adds blocks of the same observations of x and y and, unless part is nil, adds them to part as
// well. The products are computed once. Both blocks are in float32, or both in float64.
func (j *Joint[T]) Add(x, y Block, part *Joint[float32], scratch *Scratch) {
	if x.p != j.P || y.p != j.Q || x.n != y.n || (x.wide == nil) != (y.wide == nil) {
		panic(fmt.Sprintf("linalg: blocks of %d observations of %d variables and %d of %d, where there are %d and %d variables", x.n, x.p, y.n, y.p, j.P, j.Q))
	}
	all := j.Begin(x.n, x.mean, y.mean)
	var own JointUpdate[float32]
	if part != nil {
		own = part.Begin(x.n, x.mean, y.mean)
	}
	for top := 0; top < j.P; top += tile {
		bottom := min(top+tile, j.P)
		for left := 0; left < j.Q; left += tile {
			right := min(left+tile, j.Q)
			if x.wide != nil {
				products := multiplyWide(x, y, top, bottom-top, left, right-left, scratch)
				AddJointProducts(all, products, top, bottom, left, right)
				AddJointProducts(own, products, top, bottom, left, right)
			} else {
				products := multiply(x, y, top, bottom-top, left, right-left, scratch)
				AddJointProducts(all, products, top, bottom, left, right)
				AddJointProducts(own, products, top, bottom, left, right)
			}
		}
	}
	all.End()
	own.End()
}

// multiply returns the products of the variables of x from top on with those of y from left on:
// rows x cols, summed over observations. The result is valid until scratch is used again.
func multiply(x, y Block, top, rows, left, cols int, scratch *Scratch) []float32 {
	products := scratch.Values(rows * cols)
	a := blas32.General{Rows: x.n, Cols: rows, Stride: x.stride, Data: x.rows[top:]}
	b := blas32.General{Rows: y.n, Cols: cols, Stride: y.stride, Data: y.rows[left:]}
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, a, b, 0, blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: products})
	return products
}

// multiplyWide is multiply in float64.
func multiplyWide(x, y Block, top, rows, left, cols int, scratch *Scratch) []float64 {
	products := grow(&scratch.wide, rows*cols)
	a := blas64.General{Rows: x.n, Cols: rows, Stride: x.stride, Data: x.wide[top:]}
	b := blas64.General{Rows: y.n, Cols: cols, Stride: y.stride, Data: y.wide[left:]}
	blas64.Gemm(blas.Trans, blas.NoTrans, 1, a, b, 0, blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: products})
	return products
}

// Merge adds the observations of another Joint of the same variables. It panics if the variables
// differ.
func (j *Joint[T]) Merge(o *Joint[T]) {
	if j.P != o.P || j.Q != o.Q {
		panic(fmt.Sprintf("linalg: merging scatters between %d and %d variables and %d and %d", j.P, j.Q, o.P, o.Q))
	}
	u := j.Begin(o.N, o.MeanX, o.MeanY)
	AddJointProducts(u, o.Data, 0, j.P, 0, j.Q)
	u.End()
}

// Clone returns a copy that shares no memory.
func (j *Joint[T]) Clone() *Joint[T] {
	c := NewJoint[T](j.P, j.Q)
	c.N = j.N
	copy(c.MeanX, j.MeanX)
	copy(c.MeanY, j.MeanY)
	copy(c.Data, j.Data)
	return c
}

// Write writes the scatter to a state.
func (j *Joint[T]) Write(w *state.Writer) {
	w.Int(j.N)
	if j.N == 0 {
		return
	}
	w.Floats(j.MeanX)
	w.Floats(j.MeanY)
	writeValues(w, j.Data)
}

// Read replaces the scatter by one of as many variables from a state. The reader keeps the error.
func (j *Joint[T]) Read(r *state.Reader) {
	if j.N = readCount(r); j.N == 0 {
		clear(j.MeanX)
		clear(j.MeanY)
		clear(j.Data)
		return
	}
	r.FloatsInto(j.MeanX)
	r.FloatsInto(j.MeanY)
	readValues(r, j.Data)
}
