package seis

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// fewRows reports whether a rowAccumulator is cheaper than moments: 4 n <= d.
func fewRows(s measure.Site, p featureMaps) bool {
	return 4*int64(s.Layout.N)*int64(p.channels) <= int64(p.positions())
}

// A rowAccumulator holds observations, not moments. The basis does not affect scores, and the 2 n
// observations span at most 2 n dimensions, so an accumulator of coordinates has at most 2 n
// variables for each view instead of d.
type rowAccumulator struct {
	measure *seis
	site    measure.Site
	maps    featureMaps
	samples map[int][]float32 // by place: the activations (z, z') on x and T(x), channels x 2 d; never changed
}

func newRowAccumulator(m *seis, s measure.Site, p featureMaps) *rowAccumulator {
	return &rowAccumulator{m, s, p, map[int][]float32{}}
}

func (a *rowAccumulator) Update(b *measure.Batch) error {
	if err := checkBatch(a.site, b); err != nil {
		return err
	}
	sum := make([]float64, 2*a.maps.positions())
	for i, place := range b.Place {
		rows := make([]float32, a.sampleSize())
		if err := a.maps.observe(rows, sum, b, i); err != nil {
			return err
		}
		if err := a.add(place, rows); err != nil {
			return err
		}
	}
	return nil
}

func (a *rowAccumulator) sampleSize() int { return a.maps.channels * 2 * a.maps.positions() }

func (a *rowAccumulator) add(place int, rows []float32) error {
	if place < 0 || place >= a.site.Layout.N {
		return fmt.Errorf("seis: a sample at place %d; the layout has %d places", place, a.site.Layout.N)
	}
	if a.samples[place] != nil {
		return fmt.Errorf("seis: two samples at place %d", place)
	}
	a.samples[place] = rows
	return nil
}

func (a *rowAccumulator) places() []int { return slices.Sorted(maps.Keys(a.samples)) }

func (a *rowAccumulator) Merge(other measure.Accumulator) error {
	o, ok := other.(*rowAccumulator)
	if !ok {
		return fmt.Errorf("seis: merging a state of %T", other)
	}
	if o.sampleSize() != a.sampleSize() || o.maps.channels != a.maps.channels || o.site.Layout != a.site.Layout || o.measure.settings != a.measure.settings {
		return fmt.Errorf("seis: merging states of different layers, layouts or settings")
	}
	for place, rows := range o.samples {
		if err := a.add(place, rows); err != nil {
			return err
		}
	}
	return nil
}

// header returns the numbers in which a state must agree with the accumulator.
func (a *rowAccumulator) header() []int {
	l := a.site.Layout
	return []int{a.maps.channels, 2 * a.maps.positions(), l.N, l.Block, l.Groups}
}

const rowState = "seis observations"

func (a *rowAccumulator) MarshalBinary() ([]byte, error) {
	return state.Marshal(rowState, a.measure.Version(), a.Code)
}

// UnmarshalBinary leaves an accumulator that is not to be used after an error.
func (a *rowAccumulator) UnmarshalBinary(data []byte) error {
	a.samples = map[int][]float32{}
	if err := state.Unmarshal(data, rowState, a.measure.Version(), a.Code); err != nil {
		return fmt.Errorf("seis: %w", err)
	}
	return nil
}

func (a *rowAccumulator) Code(c *state.Codec) {
	header, places := a.header(), a.places()
	if c.Values(&header); !slices.Equal(header, a.header()) {
		c.Fail(fmt.Errorf("the state has channels, variables, samples, block and groups %v, not %v",
			header, a.header()))
		return
	}
	c.Values(&places)
	for i, place := range places {
		rows := a.samples[place]
		c.Values(&rows)
		switch {
		case !c.Reads():
		case len(rows) != a.sampleSize():
			c.Fail(fmt.Errorf("the state has a sample of %d values, not %d", len(rows),
				a.sampleSize()))
		case i > 0 && place <= places[i-1]:
			c.Fail(outOfOrder(place, places[i-1]))
		default:
			c.Fail(a.add(place, rows))
		}
	}
}

func (a *rowAccumulator) Scores() ([]measure.Score, error) {
	places := a.places()
	if len(places) == 0 {
		return nil, measure.ErrTooFew
	}
	z, err := a.coordinates(places)
	if err != nil {
		return nil, err
	}
	k, site := z.Shape[3], a.site
	site.Layer.Shape, site.Store = []int{a.maps.channels, k}, nil
	grid := []int{k}
	m := newAccumulator(a.measure, site, featureMaps{channels: a.maps.channels, grid: grid, pooled: grid, channelStep: k, positionStep: 1}, new(cleanView))
	m.poolingWarning = a.maps.poolingWarning()
	if err := m.Update(&measure.Batch{Place: places, Index: places, Clean: z.At(0), Transformed: z.At(1)}); err != nil {
		return nil, err
	}
	return m.Scores()
}

// coordinates returns samples in an orthonormal basis of k vectors of their span: 2 x samples x
// channels x k, clean first. Each view is centred and scaled to a sum of squares of 1, which
// changes no score. With R the observations in rows and R Rᵀ = Q Λ Qᵀ, the basis is Rᵀ Q Λ^-½ and
// the coordinates are Q Λ^½.
func (a *rowAccumulator) coordinates(places []int) (tensor.Tensor, error) {
	c, d := a.maps.channels, a.maps.positions()
	n := len(places) * c
	rows := make([]float64, 2*n*d)
	for i, place := range places {
		from := a.samples[place]
		for j := range c {
			for view := range 2 {
				to := rows[(view*n+i*c+j)*d:][:d]
				for k, v := range from[(2*j+view)*d:][:d] {
					to[k] = float64(v)
				}
			}
		}
	}
	for _, view := range [][]float64{rows[:n*d], rows[n*d:]} {
		if err := standardise(view, d); err != nil {
			return tensor.Tensor{}, err
		}
	}
	gram := make([]float64, 4*n*n)
	blas64.Syrk(blas.NoTrans, 1, blas64.General{Rows: 2 * n, Cols: d, Stride: d, Data: rows}, 0, blas64.Symmetric{Uplo: blas.Upper, N: 2 * n, Stride: 2 * n, Data: gram})
	values, vectors, err := linalg.Eigen(gram, 2*n)
	if err != nil {
		return tensor.Tensor{}, fmt.Errorf("seis: %w", err)
	}
	k := max(1, countAbove(values, gramFloor*values[0]))
	out := tensor.New(2, len(places), c, k)
	for i := range 2 * n {
		for j := range k {
			out.Data[i*k+j] = float32(vectors.At(i, j) * math.Sqrt(max(values[j], 0)))
		}
	}
	return out, nil
}

// gramFloor is the fraction of the largest eigenvalue below which one is rounding: about float32's
// resolution squared.
const gramFloor = 1e-14

// standardise centres rows of d values and scales them to a joint sum of squares of 1, unless all
// are equal. NaN and infinity are errors.
func standardise(rows []float64, d int) error {
	linalg.Centre64(rows, d)
	all := blas64.Vector{N: len(rows), Inc: 1, Data: rows}
	norm := blas64.Nrm2(all)
	switch {
	case math.IsNaN(norm) || math.IsInf(norm, 0):
		return errors.New("seis: an average over positions overflows float32")
	case norm > 0:
		blas64.Scal(1/norm, all)
	}
	return nil
}
