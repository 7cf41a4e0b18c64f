package linalg

// An Enlarged is a scatter that lies elsewhere than in memory and that another is added to, row by row.
type Enlarged struct {
	N    int // of both
	Mean []float64

	part *Scatter[float64]
	step step
}

// Enlarge begins to add part to a scatter of n observations of the given mean.
func Enlarge(n int, mean []float64, part *Scatter[float64]) *Enlarged {
	st := newStep(n, mean, part.N, part.Mean)
	return &Enlarged{N: st.n, Mean: st.mean, part: part, step: st}
}

// Rows adds to the rows from to to of the triangle.
func (e *Enlarged) Rows(values []float64, from, to int) {
	for i := from; i < to; i++ {
		row := e.part.row(i, i)
		addRow(values[:len(row)], row, e.step.factor*e.step.delta[i], e.step.delta[i:])
		values = values[len(row):]
	}
}

// Offset is where row i of the triangle begins in Data, which has P rows; row P begins where Data ends.
func (s *Scatter[T]) Offset(i int) int { return i * (2*s.P - i + 1) / 2 }

// Clear leaves no observations.
func (s *Scatter[T]) Clear() {
	s.N = 0
	clear(s.Mean)
	clear(s.Data)
}
