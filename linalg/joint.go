package linalg

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/noether-ml/noether/internal/state"
)

// A Joint is the scatter between P variables x and Q variables y of the same observations, beside which the Scatter of x
// and that of y stand alone: with several x and several y, each pair costs only what is its own. T is the precision
// that it is kept in.
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

// Add adds blocks of x and of y, observation by observation, and, if part is not nil, to part as well, for one
// computation of the products. Both blocks are in float32, or both in float64.
func (j *Joint[T]) Add(x, y Block, part *Joint[float32], scratch *Scratch) {
	n := x.N()
	if x.p != j.P || y.p != j.Q || y.N() != n || (x.wide == nil) != (y.wide == nil) {
		panic(fmt.Sprintf("linalg: blocks of %d observations of %d variables and %d of %d, where there are %d and %d variables", n, x.p, y.N(), y.p, j.P, j.Q))
	}
	all := j.step(n, x.mean, y.mean)
	var own jointStep
	if part != nil {
		own = part.step(n, x.mean, y.mean)
	}
	for top := 0; top < j.P; top += tile {
		rows := min(tile, j.P-top)
		for left := 0; left < j.Q; left += tile {
			cols := min(tile, j.Q-left)
			if x.wide != nil {
				addRectangle(j, part, multiplyWide(x, y, top, rows, left, cols, scratch), top, rows, left, cols, all, own)
			} else {
				addRectangle(j, part, multiply(x, y, top, rows, left, cols, scratch), top, rows, left, cols, all, own)
			}
		}
	}
	j.N, j.MeanX, j.MeanY = all.x.n, all.x.mean, all.y.mean
	if part != nil {
		part.N, part.MeanX, part.MeanY = own.x.n, own.x.mean, own.y.mean
	}
}

// A jointStep is how the means of x and of y change.
type jointStep struct{ x, y step }

func (j *Joint[T]) step(n int, meanX, meanY []float64) jointStep {
	return jointStep{newStep(j.N, j.MeanX, n, meanX), newStep(j.N, j.MeanY, n, meanY)}
}

func addRectangle[S, E float32 | float64](j *Joint[S], part *Joint[float32], products []E, top, rows, left, cols int, all, own jointStep) {
	for i := range rows {
		row := products[i*cols : (i+1)*cols]
		at := (top+i)*j.Q + left
		addRow(j.Data[at:at+cols], row, all.x.factor*all.x.delta[top+i], all.y.delta[left:])
		if part != nil {
			addRow(part.Data[at:at+cols], row, own.x.factor*own.x.delta[top+i], own.y.delta[left:])
		}
	}
}

func multiply(x, y Block, top, rows, left, cols int, scratch *Scratch) []float32 {
	products := grow(&scratch.products, rows*cols)
	a := blas32.General{Rows: x.N(), Cols: rows, Stride: x.p, Data: x.rows[top:]}
	b := blas32.General{Rows: y.N(), Cols: cols, Stride: y.p, Data: y.rows[left:]}
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, a, b, 0, blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: products})
	return products
}

func multiplyWide(x, y Block, top, rows, left, cols int, scratch *Scratch) []float64 {
	products := grow(&scratch.wide, rows*cols)
	a := blas64.General{Rows: x.N(), Cols: rows, Stride: x.p, Data: x.wide[top:]}
	b := blas64.General{Rows: y.N(), Cols: cols, Stride: y.p, Data: y.wide[left:]}
	blas64.Gemm(blas.Trans, blas.NoTrans, 1, a, b, 0, blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: products})
	return products
}

// Permuted returns a block of the same observations in another order: observation i is the one at order[i], which must be a
// permutation. Paired with the block of other variables it stands for pairs that do not belong together.
func (b Block) Permuted(order []int) Block {
	out := b
	out.rows, out.wide = permuted(b.rows, b.p, order), permuted(b.wide, b.p, order)
	return out
}

func permuted[T any](rows []T, p int, order []int) []T {
	if rows == nil {
		return nil
	}
	out := make([]T, len(rows))
	for i, from := range order {
		copy(out[i*p:(i+1)*p], rows[from*p:(from+1)*p])
	}
	return out
}

// Merge adds the observations of another Joint of the same variables. It panics if the variables differ.
func (j *Joint[T]) Merge(o *Joint[T]) {
	if j.P != o.P || j.Q != o.Q {
		panic(fmt.Sprintf("linalg: merging scatters between %d and %d variables and %d and %d", j.P, j.Q, o.P, o.Q))
	}
	st := j.step(o.N, o.MeanX, o.MeanY)
	addRectangle(j, nil, o.Data, 0, j.P, 0, j.Q, st, jointStep{})
	j.N, j.MeanX, j.MeanY = st.x.n, st.x.mean, st.y.mean
}

// Clone returns a copy that shares nothing.
func (j *Joint[T]) Clone() *Joint[T] {
	c := NewJoint[T](j.P, j.Q)
	c.N = j.N
	copy(c.MeanX, j.MeanX)
	copy(c.MeanY, j.MeanY)
	copy(c.Data, j.Data)
	return c
}

// Write puts the scatter into a state. No observations take no space.
func (j *Joint[T]) Write(w *state.Writer) {
	w.Int(j.N)
	if j.N == 0 {
		return
	}
	w.Floats(j.MeanX)
	w.Floats(j.MeanY)
	switch data := any(j.Data).(type) {
	case []float64:
		w.Floats(data)
	case []float32:
		w.Float32s(data)
	}
}

// Read fills the scatter, of as many variables as it has, from a state; the reader keeps the error.
func (j *Joint[T]) Read(r *state.Reader) {
	if j.N = readCount(r); j.N == 0 {
		clear(j.MeanX)
		clear(j.MeanY)
		clear(j.Data)
		return
	}
	r.FloatsInto(j.MeanX)
	r.FloatsInto(j.MeanY)
	switch data := any(j.Data).(type) {
	case []float64:
		r.FloatsInto(data)
	case []float32:
		r.Float32sInto(data)
	}
}
