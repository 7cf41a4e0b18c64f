package similarity

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/noether-ml/noether/internal/seed"
)

// A Source is a matrix of n observations of p variables, read when needed, by two goroutines at a
// time.
type Source interface {
	// Dims returns the number of observations and of variables.
	Dims() (n, p int)
	// Read copies the rows at index, in that order, into dst: len(index) x p, row-major.
	Read(index []int, dst []float64) error
	// Single reports whether all values are exact in float32.
	Single() bool
}

// Of returns a Source of n x p values, row-major, not copied.
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

// A centredSample holds ordered observations of a Source; read centres them.
type centredSample struct {
	source   Source
	order    []int     // the rows of the source that are read
	n, p     int       // number of observations and of variables
	mean     []float64 // of each variable
	constant bool      // no variable varies
	largest  float64   // the largest deviation from the mean, times scale
	// scale multiplies deviations whose squares might overflow or vanish in float32; else 1.
	scale float64
}

// chunkOf returns a chunk's observations: 16 MiB of float64, within 32 to 1024, beyond which
// products are no faster.
func chunkOf(p int) int { return min(1024, max(32, 1<<21/p)) }

// newCentredSample reads all for the means. NaN and infinities are errors, with the matrix's name,
// empty if computed here.
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

// rescale sets scale: 1, or a power of two for a largest deviation below 1e-9 or above 1e9. Scores
// in units divide by it (subset.unit).
func (s *centredSample) rescale() {
	s.scale = 1
	if s.largest > 0 && (s.largest < 1e-9 || s.largest > 1e9) {
		s.scale = math.Ldexp(1, min(-math.Ilogb(s.largest), 1000)) // a power of 2 that float64 holds
		s.largest *= s.scale
	}
}

// chunks reads from up to to of the order, without centring.
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

// at reads only positions index of s; n, mean and others stay.
func (s *centredSample) at(index []int) *centredSample {
	out := *s
	out.order = make([]int, len(index))
	for i, position := range index {
		out.order[i] = s.order[position]
	}
	return &out
}

// If both fail, the error is f's.
func inParallel(f, g func() error) error {
	done := make(chan error, 1)
	go func() { done <- g() }()
	err := f()
	if other := <-done; err == nil {
		err = other
	}
	return err
}

func identityOrder(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

func isIdentity(order []int, n int) bool {
	for i, at := range order {
		if at != i {
			return false
		}
	}
	return len(order) == n
}

// shuffled returns the first m of n rows in random order: neighbours in files are often alike, but
// jackknife groups must be independent.
func shuffled(studySeed uint64, n, m int) []int {
	return seed.Rand(studySeed, "similarity order", n).Perm(n)[:m]
}

// Pooled returns channel means over positions, n x channels. A row of s is channels x positions;
// another length is an error.
func Pooled(s Source, channels int) (Source, error) {
	n, p := s.Dims()
	if channels < 1 || p%channels != 0 {
		return nil, fmt.Errorf("%d values are no positions of %d channels", p, channels)
	}
	return &pooled{s, n, p, channels}, nil
}

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
