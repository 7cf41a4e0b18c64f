package seis

import (
	"gonum.org/v1/gonum/blas/blas32"
)

// A workspace is memory for matrices of nearly the same sizes: new memory would have to be zeroed
// and mapped.
type workspace struct {
	slices [][]float32 // one for each matrix
	used   int         // number of slices in use
}

// reset marks all memory as free. Matrices that were returned before must no longer be used.
func (w *workspace) reset() { w.used = 0 }

// values returns n values of undefined contents.
func (w *workspace) values(n int) []float32 {
	if w.used == len(w.slices) {
		w.slices = append(w.slices, nil)
	}
	s := &w.slices[w.used]
	w.used++
	if cap(*s) < n {
		*s = make([]float32, n+n/32) // with room for a matrix of slightly higher rank next time
	}
	return (*s)[:n]
}

// matrix returns a matrix of undefined contents.
func (w *workspace) matrix(rows, cols int) blas32.General {
	return blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: w.values(rows * cols)}
}

// grow reallocates a slice that is too small; contents are undefined.
func grow(s *[]float32, n int) []float32 {
	if cap(*s) < n {
		*s = make([]float32, n)
	}
	return (*s)[:n]
}
