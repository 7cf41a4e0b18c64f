package linalg

import (
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/noether-ml/noether/internal/huge"
	"github.com/noether-ml/noether/internal/state"
)

// A Cross is the scatter between x and the y of another observation: what the scatter between x and y would be if they
// had nothing to do with each other. x and y have D variables each.
type Cross struct {
	D    int
	N    int
	Mean []float64 // of x and y: 2 D
	Data []float64 // sum (x_i - mean x)(y_j - mean y)ᵀ over pairs (i, j): D x D, row-major
}

// NewCross returns the scatter of no pairs of observations of d variables each.
func NewCross(d int) *Cross {
	return &Cross{D: d, Mean: make([]float64, 2*d), Data: huge.Make[float64](d * d)}
}

// Add adds the pairs of observation i's x with observation partner[i]'s y of a block of (x, y). partner must be a
// permutation of the block's observations, so the block's mean stays that of the pairs.
func (c *Cross) Add(b Block, partner []int, scratch *Scratch) {
	if b.p != 2*c.D || len(partner) != b.N() {
		panic(fmt.Sprintf("linalg: a block of %d observations of %d variables, %d partners for 2 x %d variables", b.N(), b.p, len(partner), c.D))
	}
	st := newStep(c.N, c.Mean, b.N(), b.mean)
	c.addTiles(b, partner, scratch, st)
	c.N, c.Mean = st.n, st.mean
}

// addTiles multiplies tile by tile.
func (c *Cross) addTiles(b Block, partner []int, scratch *Scratch, st step) {
	d := c.D
	moved := grow(&scratch.moved, len(partner)*d)
	for i, j := range partner {
		copy(moved[i*d:(i+1)*d], b.rows[j*b.p+d:(j+1)*b.p])
	}
	for top := 0; top < d; top += tile {
		rows := min(tile, d-top)
		x := blas32.General{Rows: len(partner), Cols: rows, Stride: b.p, Data: b.rows[top:]}
		for left := 0; left < d; left += tile {
			cols := min(tile, d-left)
			y := blas32.General{Rows: len(partner), Cols: cols, Stride: d, Data: moved[left:]}
			products := grow(&scratch.products, rows*cols)
			blas32.Gemm(blas.Trans, blas.NoTrans, 1, x, y, 0, blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: products})
			c.addTile(products, top, rows, left, cols, st)
		}
	}
}

// addTile adds products of rows of x from top on with columns of y from left on.
func (c *Cross) addTile(products []float32, top, rows, left, cols int, st step) {
	for i := range rows {
		addRow(c.row(top + i)[left:left+cols], products[i*cols:(i+1)*cols], st.factor*st.delta[top+i], st.delta[c.D+left:])
	}
}

func (c *Cross) row(i int) []float64 { return c.Data[i*c.D : (i+1)*c.D] }

// Merge adds the pairs of another Cross of the same variables. It panics if the variables differ.
func (c *Cross) Merge(o *Cross) {
	if c.D != o.D {
		panic(fmt.Sprintf("linalg: merging crosses of %d and %d variables", c.D, o.D))
	}
	st := newStep(c.N, c.Mean, o.N, o.Mean)
	for i := range c.D {
		addRow(c.row(i), o.row(i), st.factor*st.delta[i], st.delta[c.D:])
	}
	c.N, c.Mean = st.n, st.mean
}

// Clone returns a copy that shares nothing.
func (c *Cross) Clone() *Cross {
	return &Cross{D: c.D, N: c.N, Mean: append([]float64(nil), c.Mean...), Data: append([]float64(nil), c.Data...)}
}

// Write puts the scatter into a state.
func (c *Cross) Write(w *state.Writer) {
	w.Int(c.N)
	w.Floats(c.Mean)
	w.Floats(c.Data)
}

// Read fills the scatter, of as many variables as it has, from a state; the reader keeps the error.
func (c *Cross) Read(r *state.Reader) {
	c.N = readCount(r)
	r.FloatsInto(c.Mean)
	r.FloatsInto(c.Data)
}
