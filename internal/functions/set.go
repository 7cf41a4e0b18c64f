package functions

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/seed"
	codec "github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/tensor"
)

const (
	// defaultSamples is the default of SetSettings.Samples.
	defaultSamples = 1000
	// setShuffles is the number of random pairings of x with T of other samples whose mean is the
	// null.
	setShuffles = 5
)

// SetSettings configure the measure of Python's functions of all samples at once.
type SetSettings struct {
	MeasureSettings
	Samples int `key:"samples" json:"samples" doc:"largest number of samples, random ones"`
}

// SetDescriptor describes the measure without its statistics, whose names are those of its
// functions.
func SetDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "python-set", Title: "Functions of Python, of all samples", Level: measure.LayerLevel, Resampled: "sample",
		Question: "What do functions of your own say of a layer's activations on all samples before and after the transformation?",
		Reading:  "Each statistic is a function of two matrices, the activations of all samples x and of T(x). Compare it with the null, the same for shuffled pairs.",
	}
}

// SetMeasure returns the measure of functions of two matrices, which the process at Variable
// computes. Nothing is called before all activations are there.
func SetMeasure(s SetSettings) (measure.Measure, error) {
	if s.Samples = cmp.Or(s.Samples, defaultSamples); s.Samples < 2 {
		return nil, fmt.Errorf("samples is %d: it must be at least 2", s.Samples)
	}
	if len(s.all()) == 0 {
		return nil, errNoFunction
	}
	m := &setMeasure{descriptor: SetDescriptor(), settings: s}
	for _, name := range s.all() {
		if err := checkFunction(name); err != nil {
			return nil, err
		}
		title := Title(name)
		m.descriptor.Statistics = append(m.descriptor.Statistics, measure.StatisticDescriptor{
			Name: title, Title: title, About: "The function " + title + " of the activations of all samples.", Null: "shuffled pairs",
			Range: measure.Range{Low: math.Inf(-1), High: math.Inf(1)},
		})
		m.functions = append(m.functions, setFunction{name, (&remote{use: Measures, name: name, inputs: 2}).call})
	}
	return m, nil
}

// A setMeasure is a measure of functions of two matrices. Its accumulators keep the activations of
// the first samples of the layout, which are random ones, and call the functions again without each
// jackknife group, and for shuffled pairs.
type setMeasure struct {
	descriptor measure.Descriptor
	settings   SetSettings
	functions  []setFunction
}

func (m *setMeasure) Name() string                   { return m.descriptor.Name }
func (m *setMeasure) Descriptor() measure.Descriptor { return m.descriptor }
func (m *setMeasure) Version() int                   { return 1 }
func (m *setMeasure) Settings() any                  { return m.settings }

// A setFunction returns one number for two matrices, each of samples x values.
type setFunction struct {
	name string
	call func(inputs []*engine.Array, output string) (tensor.Tensor, error)
}

func (m *setMeasure) Needs() measure.Needs { return measure.Needs{Transformed: true} }

func (m *setMeasure) Skip(measure.Site) string { return "" }

// Cost is of the activations, twice: once for the subsets with which functions are called.
func (m *setMeasure) Cost(s measure.Site) int64 {
	return 4 * 2 * 2 * int64(min(m.settings.Samples, s.Layout.N)) * int64(tensor.Size(s.Layer.Shape))
}

func (m *setMeasure) New(s measure.Site) (measure.Accumulator, error) {
	return &setAccumulator{setMeasure: m, site: s, width: tensor.Size(s.Layer.Shape)}, nil
}

// A setAccumulator keeps activations in the order in which they come.
type setAccumulator struct {
	*setMeasure
	site               measure.Site
	width              int // values of a sample
	places             []int
	clean, transformed []float32
}

// Update implements measure.Accumulator. For NaN and infinity the error is a *measure.NonFinite.
func (a *setAccumulator) Update(b *measure.Batch) error {
	for _, z := range []tensor.Tensor{b.Clean, b.Transformed} {
		if len(z.Data) != len(b.Place)*a.width {
			return fmt.Errorf("%d values for %d samples of %d", len(z.Data), len(b.Place), a.width)
		}
	}
	for i, place := range b.Place {
		if place >= a.settings.Samples {
			continue
		}
		for view, z := range map[string]tensor.Tensor{"clean": b.Clean, "transformed": b.Transformed} {
			if z.At(i).FirstNonFinite() >= 0 {
				return &measure.NonFinite{View: view, Index: b.Index[i]}
			}
		}
		a.places = append(a.places, place)
		a.clean = append(a.clean, b.Clean.At(i).Data...)
		a.transformed = append(a.transformed, b.Transformed.At(i).Data...)
	}
	return nil
}

func (a *setAccumulator) Merge(other measure.Accumulator) error {
	o, ok := other.(*setAccumulator)
	if !ok || o.width != a.width || o.settings.Samples != a.settings.Samples {
		return errors.New("the accumulators are of different measures or layers")
	}
	a.places = append(a.places, o.places...)
	a.clean, a.transformed = append(a.clean, o.clean...), append(a.transformed, o.transformed...)
	return nil
}

// Scores implements measure.Accumulator. The value of each function is that for all samples that
// are kept.
func (a *setAccumulator) Scores() ([]measure.Score, error) {
	order := make([]int, len(a.places)) // rows by their places
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(a.places[i], a.places[j]) })
	var out []measure.Score
	for _, f := range a.functions {
		s, err := a.score(f, order)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

func (a *setAccumulator) score(f setFunction, order []int) (measure.Score, error) {
	n := len(order)
	s := measure.Plain(Title(f.name), math.NaN(), n)
	s.Min, s.Max = math.Inf(-1), math.Inf(1)
	if n < 2 {
		s.Warnings = []string{fmt.Sprintf("a function of all samples needs two or more, not %d", n)}
		return s, nil
	}
	if a.site.Layout.N > a.settings.Samples {
		s.Warnings = []string{fmt.Sprintf("of %d random samples (the setting samples)", n)}
	}
	var err error
	if s.Value, err = a.call(f, order, order); err != nil {
		return s, err
	}
	byGroup := map[int][]int{}
	for _, row := range order {
		g := a.site.Layout.Group(a.places[row])
		byGroup[g] = append(byGroup[g], row)
	}
	for g := range a.site.Layout.Groups {
		left := byGroup[g]
		if len(left) == 0 || n-len(left) < 2 {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(order), func(row int) bool { return a.site.Layout.Group(a.places[row]) == g })
		v, err := a.call(f, rest, rest)
		if err != nil {
			return s, err
		}
		s.Replicates = append(s.Replicates, measure.Replicate{Value: v, Left: len(left)})
	}
	if s.Low, s.High = resample.Jackknife(s.Value, n, s.Replicates); math.IsNaN(s.Low) {
		s.Warnings = append(s.Warnings, "no interval: too few samples for two groups")
	}
	key := a.site.Key
	random := seed.Rand(key.Seed, "python-set", key.Data, key.Transform, fmt.Sprint(key.Trial), a.site.Layer.Name)
	s.Null = 0
	for range setShuffles {
		others := make([]int, n) // each sample with another one
		for i, j := range resample.Cycle(random, n) {
			others[i] = order[j]
		}
		v, err := a.call(f, order, others)
		if err != nil {
			return s, err
		}
		s.Null += v / setShuffles
	}
	return s, nil
}

// call calls a function with rows of the activations on x, and others of those on T(x).
func (a *setAccumulator) call(f setFunction, rows, others []int) (float64, error) {
	gather := func(z []float32, rows []int) *engine.Array {
		data := make([]float32, 0, len(rows)*a.width)
		for _, row := range rows {
			data = append(data, z[row*a.width:(row+1)*a.width]...)
		}
		return &engine.Array{Shape: []int{len(rows), a.width}, Data: data}
	}
	v, err := f.call([]*engine.Array{gather(a.clean, rows), gather(a.transformed, others)}, "value")
	switch {
	case err != nil:
		return 0, err
	case v.Len() != 1:
		return 0, fmt.Errorf("function %s returns the shape %v for a set of %d samples: it must return one number; one for each sample is for the measure python", f.name, v.Shape, len(rows))
	case math.IsNaN(float64(v.Data[0])) || math.IsInf(float64(v.Data[0]), 0):
		return 0, fmt.Errorf("function %s returns NaN or infinity for a set of %d samples", f.name, len(rows))
	}
	return float64(v.Data[0]), nil
}

const setState = "python-set"

func (a *setAccumulator) code(c *codec.Codec) {
	c.Values(&a.places, &a.clean, &a.transformed)
	c.Check(len(a.clean) == len(a.places)*a.width && len(a.transformed) == len(a.clean), "%d and %d values of %d samples", len(a.clean), len(a.transformed), len(a.places))
	for _, p := range a.places {
		c.Check(p >= 0 && p < a.site.Layout.N, "place %d of %d samples", p, a.site.Layout.N)
	}
}

func (a *setAccumulator) MarshalBinary() ([]byte, error) { return codec.Marshal(setState, 1, a.code) }

// UnmarshalBinary leaves the accumulator unchanged after an error.
func (a *setAccumulator) UnmarshalBinary(data []byte) error {
	b := &setAccumulator{setMeasure: a.setMeasure, site: a.site, width: a.width}
	if err := codec.Unmarshal(data, setState, 1, b.code); err != nil {
		return err
	}
	*a = *b
	return nil
}
