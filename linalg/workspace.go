package linalg

import (
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/noether-ml/noether/internal/huge"
)

// A workspace is memory for the matrices of a computation that is repeated with sizes that hardly differ: fresh memory would be
// zeroed and faulted in each time. The zero workspace is ready.
type workspace struct {
	slices [][]float32
	given  int // slices
}

// reset takes back what has been given since given was so many.
func (w *workspace) reset(given int) { w.given = given }

// values gives n values, which may be anything.
func (w *workspace) values(n int) []float32 {
	if w.given == len(w.slices) {
		w.slices = append(w.slices, nil)
	}
	s := &w.slices[w.given]
	w.given++
	if cap(*s) < n {
		*s = huge.Make[float32](n + n/32) // a rank that is one or two higher next time is to fit too
	}
	return (*s)[:n]
}

// matrix gives a matrix of any contents.
func (w *workspace) matrix(rows, cols int) blas32.General {
	return blas32.General{Rows: rows, Cols: cols, Stride: cols, Data: w.values(rows * cols)}
}
