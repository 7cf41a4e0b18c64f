package linalg

import (
	"fmt"

	"github.com/noether-ml/noether/internal/state"
)

// A Scatter holds the number, the mean and the scatter matrix of observations of P variables. T is
// the type of the elements of the matrix.
type Scatter[T float32 | float64] struct {
	P    int       // number of variables
	N    int       // number of observations
	Mean []float64 // P values
	Data []T       // upper triangle of sum (x - mean)(x - mean)ᵀ, row by row: P (P + 1) / 2 values
}

// NewScatter returns a Scatter of p variables without observations.
func NewScatter[T float32 | float64](p int) *Scatter[T] {
	return &Scatter[T]{P: p, Mean: make([]float64, p), Data: make([]T, p*(p+1)/2)}
}

// Row returns row i of the upper triangle from column j on, for j >= i. It shares memory with s.
func (s *Scatter[T]) Row(i, j int) []T {
	end := (i + 1) * (2*s.P - i) / 2
	return s.Data[end-(s.P-j) : end]
}

// Square returns the upper triangle of the scatter of the variables lo to hi (exclusive), as a
// copy: (hi-lo) x (hi-lo), row-major, with zeros below the diagonal.
func (s *Scatter[T]) Square(lo, hi int) []T {
	n := hi - lo
	out := make([]T, n*n)
	for i := range n {
		copy(out[i*n+i:(i+1)*n], s.Row(lo+i, lo+i))
	}
	return out
}

// Between returns a copy of the scatter between the variables lo to mid and the variables mid to hi
// (exclusive): (mid-lo) x (hi-mid), row-major.
func (s *Scatter[T]) Between(lo, mid, hi int) []T {
	n := hi - mid
	out := make([]T, (mid-lo)*n)
	for i := range mid - lo {
		copy(out[i*n:(i+1)*n], s.Row(lo+i, mid))
	}
	return out
}

// Diagonal returns a copy of the diagonal: for each variable the sum of its squared deviations.
func (s *Scatter[T]) Diagonal() []T {
	out := make([]T, s.P)
	for i := range out {
		out[i] = s.Row(i, i)[0]
	}
	return out
}

// Merge adds the observations of another scatter of the same variables. It panics if the variables
// differ.
func (s *Scatter[T]) Merge(o *Scatter[T]) {
	if s.P != o.P {
		panic(fmt.Sprintf("linalg: merging scatters of %d and %d variables", s.P, o.P))
	}
	u := s.Begin(o.N, o.Mean) // u.meanStep: how the mean changes, for which addRow corrects the sums
	for i := range s.P {
		addRow(s.Row(i, i), o.Row(i, i), u.meanStep, u.meanStep, i, i)
	}
	u.End()
}

// Clone returns a copy that shares no memory with s.
func (s *Scatter[T]) Clone() *Scatter[T] {
	return &Scatter[T]{P: s.P, N: s.N, Mean: append([]float64(nil), s.Mean...), Data: append([]T(nil), s.Data...)}
}

// Write writes the scatter, without P, to a state: the serialised form of sums that are updated
// batch by batch.
func (s *Scatter[T]) Write(w *state.Writer) {
	w.Int(s.N)
	if s.N == 0 {
		return
	}
	w.Floats(s.Mean)
	writeValues(w, s.Data)
}

// Read replaces the scatter by one of the same number of variables from a state. An error is
// recorded in r.
func (s *Scatter[T]) Read(r *state.Reader) {
	if s.N = readCount(r); s.N == 0 {
		s.Clear()
		return
	}
	r.FloatsInto(s.Mean)
	readValues(r, s.Data)
}

func writeValues[T float32 | float64](w *state.Writer, values []T) {
	switch values := any(values).(type) {
	case []float64:
		w.Floats(values)
	case []float32:
		w.Float32s(values)
	}
}

func readValues[T float32 | float64](r *state.Reader, values []T) {
	switch values := any(values).(type) {
	case []float64:
		r.FloatsInto(values)
	case []float32:
		r.Float32sInto(values)
	}
}

// readCount reads a number of observations.
func readCount(r *state.Reader) int {
	n := r.Int()
	if n < 0 {
		r.Fail(fmt.Errorf("the state has %d observations", n))
		return 0
	}
	return n
}

// Clear removes all observations.
func (s *Scatter[T]) Clear() {
	s.N = 0
	clear(s.Mean)
	clear(s.Data)
}
