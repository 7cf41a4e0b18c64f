package linalg

import (
	"fmt"
	"math"

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

// Code writes the scatter, without P, to a state, or replaces it by one of the same number of
// variables from a state.
func (s *Scatter[T]) Code(c *state.Codec) {
	if c.Len(&s.N, math.MaxInt) > 0 {
		c.Values(s.Mean, s.Data)
	} else if c.Reads() {
		s.Clear()
	}
}

// Clear removes all observations.
func (s *Scatter[T]) Clear() {
	s.N = 0
	clear(s.Mean)
	clear(s.Data)
}
