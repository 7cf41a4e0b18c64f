package seis

import (
	"gonum.org/v1/gonum/blas/blas32"
)

// A workspace is memory for the matrices of a computation that is repeated with nearly the same
// sizes. Fresh memory would be zeroed and faulted in each time. The zero workspace is ready.
type workspace struct {
	slices [][]float32
	given  int // how many of the slices are in use
}

// reset takes back all that has been given.
func (w *workspace) reset() { w.given = 0 }

// values returns n values of undefined contents.
func (w *workspace) values(n int) []float32 {
	if w.given == len(w.slices) {
		w.slices = append(w.slices, nil)
	}
	s := &w.slices[w.given]
	w.given++
	if cap(*s) < n {
		*s = make([]float32, n+n/32) // a rank that is one or two higher next time is to fit too
	}
	return (*s)[:n]
}

// matrix returns a matrix of undefined contents.
func (w *workspace) matrix(rows, cols int) blas32.General {
	return blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: w.values(rows * cols)}
}

// grow returns n values of a slice, reallocated where it is too small. Their contents are
// undefined.
func grow(s *[]float32, n int) []float32 {
	if cap(*s) < n {
		*s = make([]float32, n)
	}
	return (*s)[:n]
}
