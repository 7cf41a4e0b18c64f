package linalg

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// A Block is some observations of p variables, centred on their own mean and ready to be multiplied.
type Block struct {
	p    int
	rows []float32 // n x p, each row an observation less the mean
	mean []float64 // p
}

// Panel is the number of rows of a product that are computed at a time: enough to fill a matrix product, and few enough
// to stay in the cache until they are added up in float64.
const Panel = 256

// Centre takes the mean out of observations, in place, and returns them as a block. rows is n x p, row-major. The mean
// holds NaN or infinity if and only if the observations do.
func Centre(rows []float32, p int) Block {
	b := Block{p: p, rows: rows, mean: make([]float64, p)}
	n := b.N()
	for i := range n {
		for j, v := range rows[i*p : (i+1)*p] {
			b.mean[j] += float64(v)
		}
	}
	m := make([]float32, p)
	for j := range m {
		b.mean[j] /= float64(n)
		m[j] = float32(b.mean[j])
	}
	for i := range n {
		row := rows[i*p : (i+1)*p]
		for j := range row {
			row[j] -= m[j]
		}
	}
	return b
}

// N is the number of observations.
func (b Block) N() int { return len(b.rows) / b.p }

// Add adds a block to a scatter and, if part is not nil, to part as well, for one computation of the products.
func (s *Scatter[T]) Add(b Block, part *Scatter[float32]) {
	n := b.N()
	all := newStep(s.N, s.Mean, n, b.mean)
	var own step
	if part != nil {
		own = newStep(part.N, part.Mean, n, b.mean)
	}
	products := make([]float32, min(Panel, s.P)*s.P)
	for lo := 0; lo < s.P; lo += Panel {
		hi := min(lo+Panel, s.P)
		width := s.P - lo
		multiply(b.rows, b.p, lo, hi, products[:(hi-lo)*width])
		for i := lo; i < hi; i++ {
			row := products[(i-lo)*width+i-lo : (i-lo+1)*width]
			addRow(s.row(i, i), row, all.factor*all.delta[i], all.delta[i:])
			if part != nil {
				addRow(part.row(i, i), row, own.factor*own.delta[i], own.delta[i:])
			}
		}
	}
	s.N, s.Mean = all.n, all.mean
	if part != nil {
		part.N, part.Mean = own.n, own.mean
	}
}

// multiply computes the products of the variables lo to hi with the variables lo to p: dst is (hi-lo) x (p-lo).
func multiply(rows []float32, p, lo, hi int, dst []float32) {
	n := len(rows) / p
	left := blas32.General{Rows: n, Cols: hi - lo, Stride: p, Data: rows[lo:]}
	right := blas32.General{Rows: n, Cols: p - lo, Stride: p, Data: rows[lo:]}
	blas32.Gemm(blas.Trans, blas.NoTrans, 1, left, right, 0, blas32.General{Rows: hi - lo, Cols: p - lo, Stride: p - lo, Data: dst})
}
