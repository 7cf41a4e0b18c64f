package linalg

// bandSize is about how many values of a triangle are read at once.
const bandSize = 1 << 16

// MergeFrom adds n observations of the given mean whose scatter lies elsewhere than in memory, in numbers of a precision of its own:
// read fills values with those from at on in its Data.
func MergeFrom[S, T float32 | float64](s *Scatter[S], n int, mean []float64, read func(values []T, at int) error) error {
	st := newStep(s.N, s.Mean, n, mean)
	values := make([]T, bandSize+s.P)
	for from := 0; from < s.P; {
		to, start := from, s.offset(from)
		for to < s.P && s.offset(to)-start < bandSize {
			to++
		}
		if err := read(values[:s.offset(to)-start], start); err != nil {
			return err
		}
		for i := from; i < to; i++ {
			row := s.row(i, i)
			addRow(row, values[s.offset(i)-start:], st.factor*st.delta[i], st.delta[i:])
		}
		from = to
	}
	s.N, s.Mean = st.n, st.mean
	return nil
}

// offset is where row i of the triangle begins in Data, which has P rows; row P begins where Data ends.
func (s *Scatter[T]) offset(i int) int { return i * (2*s.P - i + 1) / 2 }

// Clear leaves no observations.
func (s *Scatter[T]) Clear() {
	s.N = 0
	clear(s.Mean)
	clear(s.Data)
}
