package similarity

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/noether-ml/noether/internal/seed"
)

// A Source is a matrix of n observations (rows) of p variables. Rows are read when they are needed,
// so the matrix need not fit into memory. Two goroutines may read at the same time.
type Source interface {
	// Dims returns the number of observations and of variables.
	Dims() (n, p int)
	// Read copies the rows at index, in that order, into dst: len(index) x p, row-major.
	Read(index []int, dst []float64) error
	// Single reports whether all values are exact in float32.
	Single() bool
}

// Of returns a Source of n x p values in memory, row-major. They are not copied.
func Of[T float32 | float64](values []T, n, p int) (Source, error) {
	if n < 1 || p < 1 {
		return nil, fmt.Errorf("a matrix of %d x %d: there must be observations and variables", n, p)
	}
	if len(values)/p != n || len(values)%p != 0 {
		return nil, fmt.Errorf("%d values are no %d x %d matrix", len(values), n, p)
	}
	return &dense[T]{values, n, p}, nil
}

type dense[T float32 | float64] struct {
	values []T
	n, p   int
}

func (d *dense[T]) Dims() (n, p int) { return d.n, d.p }

func (d *dense[T]) Single() bool {
	var zero T
	_, ok := any(zero).(float32)
	return ok
}

func (d *dense[T]) Read(index []int, dst []float64) error {
	for i, row := range index {
		out := dst[i*d.p : (i+1)*d.p]
		for j, v := range d.values[row*d.p : (row+1)*d.p] {
			out[j] = float64(v)
		}
	}
	return nil
}

// A centredSample holds observations of a Source in a given order. read returns them minus the mean
// of each variable.
type centredSample struct {
	source   Source
	order    []int     // the rows of the source that are read
	n, p     int       // number of observations and of variables
	mean     []float64 // of each variable
	constant bool      // no variable varies
	largest  float64   // the largest deviation from the mean, times scale
	// scale multiplies the deviations. It differs from 1 where their squares might overflow or
	// vanish in float32.
	scale float64
}

// chunkOf returns the number of observations in a chunk of p variables: 16 MiB of float64, but at
// least 32 and at most 1024, since more do not make products faster.
func chunkOf(p int) int { return min(1024, max(32, 1<<21/p)) }

// newCentredSample reads the observations once to compute their means. It returns an error for NaN
// and infinities. name is the name of the matrix in errors, or empty for a matrix that the program
// itself computed.
func newCentredSample(ctx context.Context, name string, source Source, order []int) (*centredSample, error) {
	_, p := source.Dims()
	s := &centredSample{source: source, order: order, n: len(order), p: p, mean: make([]float64, p)}
	first := make([]float64, p)
	low, high := make([]float64, p), make([]float64, p)
	err := s.chunks(ctx, 0, s.n, func(from, to int, rows []float64) error {
		if from == 0 {
			copy(first, rows)
		}
		for i := range to - from {
			// Deviations from the first observation keep their precision where there is a large
			// offset.
			for j, v := range rows[i*p : (i+1)*p] {
				if v-v != 0 {
					return fmt.Errorf("%s: NaN or infinity in row %d, column %d", name, order[from+i], j)
				}
				d := v - first[j]
				s.mean[j] += d
				if d < low[j] {
					low[j] = d
				} else if d > high[j] {
					high[j] = d
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.constant = true
	for j := range s.mean {
		m := s.mean[j] / float64(s.n)
		if low[j] < high[j] {
			s.constant = false
			s.largest = max(s.largest, high[j]-m, m-low[j])
		}
		s.mean[j] = first[j] + m
	}
	if !(s.largest <= math.MaxFloat64) {
		return nil, fmt.Errorf("%s: deviations are beyond the largest number: divide the matrix by a constant", name)
	}
	s.rescale()
	return s, nil
}

// rescale sets the scale: 1, or a power of two if the largest deviation is below 1e-9 or above 1e9.
// It changes no score: statistics in the unit of the values divide by it (see subset.unit).
func (s *centredSample) rescale() {
	s.scale = 1
	if s.largest > 0 && (s.largest < 1e-9 || s.largest > 1e9) {
		s.scale = math.Ldexp(1, min(-math.Ilogb(s.largest), 1000)) // a power of 2 that float64 holds
		s.largest *= s.scale
	}
}

// chunks reads the observations from to to (exclusive) of the order in chunks, without centring
// them.
func (s *centredSample) chunks(ctx context.Context, from, to int, each func(from, to int, rows []float64) error) error {
	size := min(chunkOf(s.p), to-from)
	buffer := make([]float64, size*s.p)
	for at := from; at < to; at += size {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(at+size, to)
		rows := buffer[:(end-at)*s.p]
		if err := s.source.Read(s.order[at:end], rows); err != nil {
			return err
		}
		if err := each(at, end, rows); err != nil {
			return err
		}
	}
	return nil
}

// read fills dst with the centred observations from to to (exclusive) of the order.
func (s *centredSample) read(from, to int, dst []float64) error {
	if err := s.source.Read(s.order[from:to], dst); err != nil {
		return err
	}
	for i := range to - from {
		row := dst[i*s.p : (i+1)*s.p]
		for j, m := range s.mean {
			row[j] = (row[j] - m) * s.scale
		}
	}
	return nil
}

// at returns a sample that reads some of the observations, given as positions in the order of s.
// The other fields, such as n and the mean, remain those of s.
func (s *centredSample) at(index []int) *centredSample {
	out := *s
	out.order = make([]int, len(index))
	for i, position := range index {
		out.order[i] = s.order[position]
	}
	return &out
}

// inParallel runs two functions at the same time and returns the error of f, or else that of g.
func inParallel(f, g func() error) error {
	done := make(chan error, 1)
	go func() { done <- g() }()
	err := f()
	if other := <-done; err == nil {
		err = other
	}
	return err
}

// identityOrder returns the indices 0 to n - 1.
func identityOrder(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// isIdentity reports whether the indices are 0 to n - 1, in order.
func isIdentity(order []int, n int) bool {
	for i, at := range order {
		if at != i {
			return false
		}
	}
	return len(order) == n
}

// shuffled returns the first m of n rows in a random order. Neighbouring rows of a file are often
// alike (of one class, or of one video), but the groups of a jackknife must be independent.
func shuffled(studySeed uint64, n, m int) []int {
	return seed.Rand(studySeed, "similarity order", n).Perm(n)[:m]
}

// Pooled returns a Source of the mean of each channel over positions: n x channels. A row of s is
// channels x positions, row-major; it is an error if its length is no multiple of channels.
func Pooled(s Source, channels int) (Source, error) {
	n, p := s.Dims()
	if channels < 1 || p%channels != 0 {
		return nil, fmt.Errorf("%d values are no positions of %d channels", p, channels)
	}
	return &pooled{s, n, p, channels}, nil
}

// A pooled is the Source that Pooled returns. It has n x channels values; of has n x p.
type pooled struct {
	of             Source
	n, p, channels int
}

func (s *pooled) Dims() (n, p int) { return s.n, s.channels }

// Single returns false, since means of float32 numbers are not exact in float32.
func (s *pooled) Single() bool { return false }

func (s *pooled) Read(index []int, dst []float64) error {
	row, positions := make([]float64, s.p), s.p/s.channels
	for i := range index {
		if err := s.of.Read(index[i:i+1], row); err != nil {
			return err
		}
		for c := range s.channels {
			dst[i*s.channels+c] = floats.Sum(row[c*positions:(c+1)*positions]) / float64(positions)
		}
	}
	return nil
}
