// Package paired computes measures whose statistics are means over samples of a function of two
// vectors: the model's result z for x, and z' for T(x).
//
//	statistic = 1/n sum_i f(z_i, z'_i)
//
// A measure supplies the function f and names its columns in a Spec. This package computes the sums
// and returns the means, each with
//
//   - an interval: Wilson's for proportions, otherwise the delete-group jackknife over the groups of the
//     measure.Layout, clipped to the range of the statistic. Every score has the replicates of the
//     jackknife.
//   - a null: the same mean over shuffled pairs. The clean vector of a sample is paired with the
//     transformed vector of the next sample in its block, and that of the last sample with the first. The
//     order of the samples is random (see measure.Layout), so the next sample is a random one. No sample is
//     paired with itself, and every sample is used once on each side. Only two vectors of an unfinished
//     block are stored. A block with a single sample has no pairs.
//   - if the settings ask for them, the means for each class of labels, and the terms of the means.
//
// For instance, the mean absolute difference of a layer of one value:
//
//	m := paired.New(paired.Spec{
//		Descriptor: descriptor, // has the statistic "difference"
//		Version:    1, StateVersion: 1,
//		Needs:      measure.Needs{Transformed: true},
//		Columns:    []paired.Column{{Statistic: "difference", Transformed: true}},
//		Pair: func(out []float64, _ int, clean, transformed []float32) error {
//			out[0] = math.Abs(float64(transformed[0] - clean[0]))
//			return nil
//		},
//	})
package paired

import (
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// A Column describes one value that a Spec computes for a pair.
type Column struct {
	Statistic   string // name in scores; "": the column is not scored
	Sample      string // name among per-sample values; "": the column is not stored
	Proportion  bool   // each value is 0 or 1
	Difference  bool   // each value is -1, 0 or 1, the difference of two proportions
	Transformed bool   // needs the transformed view
	Guessed     bool   // random guessing gives 1 / classes; a score that is not higher has a warning
	// Labelled says that the value is NaN for a sample without a label. The column is scored only if
	// every sample has one.
	Labelled bool
	// Null returns the null from the means of all columns, instead of from shuffled pairs; nil: from
	// shuffled pairs, if the descriptor names a null.
	Null func(means []float64) float64
}

// A Derived is a statistic that is a function of the means of the columns. Its interval is a
// delete-group jackknife.
type Derived struct {
	Statistic string
	Labelled  bool                          // uses columns that are Labelled
	Of        func(means []float64) float64 // NaN: undefined
	Undefined string                        // the warning where it is undefined
	Null      func(means []float64) float64 // nil: none
	// Extreme returns an interval where the value is the same without each group, for instance where
	// two predictions agree on all of n samples; nil: none is needed.
	Extreme func(means []float64, n int) (low, high float64)
}

// A Spec specifies a measure.
type Spec struct {
	// Descriptor has the name of the measure, and the range and the null of each statistic.
	Descriptor measure.Descriptor
	// Version is the version of the measure, and StateVersion that of its serialised states.
	Version, StateVersion int
	Settings              any
	// Needs is the input of the measure. With Needs.Prediction a row has one value for each class.
	Needs   measure.Needs
	Columns []Column
	Derived []Derived
	// Pair computes the columns of one pair. transformed is nil if there is no transformed view. A
	// *measure.NonFinite error does not need the index of the sample.
	Pair func(out []float64, label int, clean, transformed []float32) error
	// PerClass asks for scores of each class as well, where the site has classes.
	PerClass bool
}

// method is the measure of a Spec. It implements measure.Measure.
type method struct{ spec Spec }

// New returns the measure of a spec.
func New(spec Spec) measure.Measure { return &method{spec} }

func (m *method) Name() string                   { return m.spec.Descriptor.Name }
func (m *method) Descriptor() measure.Descriptor { return m.spec.Descriptor }
func (m *method) Version() int                   { return m.spec.Version }
func (m *method) Settings() any                  { return m.spec.Settings }
func (m *method) Needs() measure.Needs           { return m.spec.Needs }

func (m *method) Skip(s measure.Site) string {
	if m.spec.Needs.Prediction && len(s.Classes) < 2 {
		return "the model's output is not a score for each of several classes"
	}
	return ""
}

func (m *method) Cost(s measure.Site) int64 { return m.spec.cost(s) }

func (m *method) New(s measure.Site) (measure.Accumulator, error) {
	return newAccumulator(&m.spec, s), nil
}

// hasNull reports whether any statistic has a null.
func (s *Spec) hasNull() bool {
	return slices.ContainsFunc(s.Descriptor.Statistics, func(d measure.StatisticDescriptor) bool { return d.Null != "" })
}

// usesLabels reports whether any column depends on the label.
func (s *Spec) usesLabels() bool {
	return slices.ContainsFunc(s.Columns, func(c Column) bool { return c.Labelled })
}

// samplesKept returns the number of columns that are stored for each sample.
func (s *Spec) samplesKept() int {
	n := 0
	for _, c := range s.Columns {
		if c.Sample != "" {
			n++
		}
	}
	return n
}

// parts returns the number of parts of the data that have sums: all samples, and each class.
func (s *Spec) parts(site measure.Site) int {
	if s.PerClass {
		return 1 + len(site.Classes)
	}
	return 1
}

// cost returns an upper bound on the bytes of an accumulator.
func (s *Spec) cost(site measure.Site) int64 {
	table := 8 * int64(s.parts(site)*site.Layout.Groups) * int64(1+len(s.Columns))
	width := tensor.Size(site.Layer.Shape)
	if s.Needs.Prediction {
		width = len(site.Classes)
		table += 8 * int64(width)
	}
	cost := table
	if site.KeepSamples {
		cost += 2 * 8 * int64(site.Layout.N) * int64(1+s.samplesKept()) // twice: a growing slice is copied
	}
	if s.hasNull() {
		cost += table + 2*4*int64(width)
	}
	return cost
}

// An accumulator sums the columns of a Spec at a site. It implements measure.Accumulator and
// measure.Sampler.
type accumulator struct {
	spec        *Spec
	site        measure.Site
	width       int  // values in a row; 0 until the first batch
	transformed bool // whether there is a transformed view; set by the first batch

	values  table
	classes []int // number of clean samples by predicted class; nil unless Needs.Prediction
	null    table
	dropped bool              // whether the null is omitted, to stay within the budget
	open    map[int]*openPair // by block; blocks that are complete are removed
	out     []float64         // scratch

	index []int     // indices of the samples whose values are stored
	kept  []float64 // len(index) x samplesKept
}

// An openPair holds the rows of an incomplete block that are not yet paired for the null.
type openPair struct {
	last        int       // place of the latest sample
	count       int       // samples so far
	label       int       // of the latest sample
	clean       []float32 // the latest sample's clean row
	transformed []float32 // the first sample's transformed row
}

// newAccumulator returns an empty accumulator. If the null would exceed the site's budget, there is no
// null, and the scores have a warning.
func newAccumulator(spec *Spec, site measure.Site) *accumulator {
	parts, groups, columns := spec.parts(site), site.Layout.Groups, len(spec.Columns)
	a := &accumulator{spec: spec, site: site, values: newTable(parts, groups, columns), out: make([]float64, columns)}
	if spec.Needs.Prediction {
		a.classes = make([]int, len(site.Classes))
	}
	if spec.hasNull() {
		a.dropped = site.Budget > 0 && spec.cost(site) > site.Budget
		if !a.dropped {
			a.null = newTable(parts, groups, columns)
			a.open = map[int]*openPair{}
		}
	}
	return a
}

// Update adds the samples of a batch.
func (a *accumulator) Update(b *measure.Batch) error {
	if len(b.Place) == 0 {
		return nil
	}
	if err := a.check(b); err != nil {
		return err
	}
	for i := range b.Place {
		if err := a.addSample(b, i); err != nil {
			return err
		}
	}
	if a.open == nil || !a.transformed {
		return nil
	}
	for lo := 0; lo < len(b.Place); {
		block := b.Place[lo] / a.site.Layout.Block
		hi := lo + 1
		for hi < len(b.Place) && b.Place[hi]/a.site.Layout.Block == block {
			hi++
		}
		if err := a.shuffle(b, block, lo, hi); err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// check checks that a batch is valid and has the shape of the batches before it.
func (a *accumulator) check(b *measure.Batch) error {
	n, transformed := len(b.Place), b.Transformed.Len() > 0
	if b.Clean.Rank() == 0 || b.Clean.Shape[0] != n || len(b.Index) != n || len(b.Label) != n {
		return fmt.Errorf("a batch of %d places has %d indices, %d labels and activations of shape %v", n, len(b.Index), len(b.Label), b.Clean.Shape)
	}
	if transformed && !slices.Equal(b.Clean.Shape, b.Transformed.Shape) {
		return fmt.Errorf("the clean view has shape %v, but the transformed view has shape %v", b.Clean.Shape, b.Transformed.Shape)
	}
	if !transformed && a.spec.Needs.OtherModel {
		return fmt.Errorf("%s compares two models, but the batch has the predictions of one", a.spec.Descriptor.Name)
	}
	if !transformed && !a.spec.Needs.CleanServes {
		return fmt.Errorf("%s compares two views, but the batch has no transformed view", a.spec.Descriptor.Name)
	}
	width := b.Clean.Len() / n
	if width == 0 {
		return fmt.Errorf("activations of shape %v are empty", b.Clean.Shape)
	}
	if classes := len(a.site.Classes); a.spec.Needs.Prediction && width != classes {
		return fmt.Errorf("a prediction of %d values for a model of %d classes", width, classes)
	}
	if a.width == 0 {
		a.width, a.transformed = width, transformed
	}
	if a.width != width || a.transformed != transformed {
		return fmt.Errorf("a sample of %d values (transformed view: %v) after samples of %d (transformed view: %v)", width, transformed, a.width, a.transformed)
	}
	for i, p := range b.Place {
		if p < 0 || p >= a.site.Layout.N || i > 0 && p <= b.Place[i-1] {
			return fmt.Errorf("place %d in a layout of %d samples: places must be ascending and in its range", p, a.site.Layout.N)
		}
	}
	return nil
}

// addSample adds sample i of a batch to the sums.
func (a *accumulator) addSample(b *measure.Batch, i int) error {
	label, classes := b.Label[i], len(a.site.Classes)
	if a.spec.Needs.Labels && label == dataset.NoLabel {
		return fmt.Errorf("sample %d has no label, but %s needs one", b.Index[i], a.spec.Descriptor.Name)
	}
	if (a.spec.Needs.Labels || a.values.parts > 1 || a.spec.usesLabels()) && label != dataset.NoLabel && (label < 0 || label >= classes) {
		return fmt.Errorf("sample %d has label %d; the model has %d classes, so labels must be 0 to %d", b.Index[i], label, classes, classes-1)
	}
	var transformed []float32
	if a.transformed {
		transformed = b.Transformed.At(i).Data
	}
	if err := a.spec.Pair(a.out, label, b.Clean.At(i).Data, transformed); err != nil {
		var bad *measure.NonFinite
		if errors.As(err, &bad) {
			return &measure.NonFinite{View: bad.View, Index: b.Index[i]}
		}
		return fmt.Errorf("sample %d: %w", b.Index[i], err)
	}
	a.addTo(&a.values, a.site.Layout.Group(b.Place[i]), label)
	if a.classes != nil {
		row := b.Clean.At(i).Data
		a.classes[slices.Index(row, slices.Max(row))]++
	}
	if a.site.KeepSamples {
		a.index = append(a.index, b.Index[i])
		for c, column := range a.spec.Columns {
			if column.Sample != "" {
				a.kept = append(a.kept, a.out[c])
			}
		}
	}
	return nil
}

// addTo adds the columns in a.out to all samples' sums and to those of the label's class.
func (a *accumulator) addTo(t *table, group, label int) {
	t.add(0, group, a.out)
	if t.parts > 1 && label != dataset.NoLabel {
		t.add(1+label, group, a.out)
	}
}

// shuffle adds the shuffled pairs of samples lo to hi (exclusive) of a batch, all of one block.
func (a *accumulator) shuffle(b *measure.Batch, block, lo, hi int) error {
	o := a.open[block]
	if o == nil {
		o = &openPair{transformed: b.Transformed.At(lo).Data}
	} else {
		if b.Place[lo] <= o.last {
			return fmt.Errorf("place %d of block %d comes after place %d", b.Place[lo], block, o.last)
		}
		if err := a.addShuffled(&a.null, block, o.label, o.clean, b.Transformed.At(lo).Data); err != nil {
			return err
		}
	}
	for i := lo + 1; i < hi; i++ {
		if err := a.addShuffled(&a.null, block, b.Label[i-1], b.Clean.At(i-1).Data, b.Transformed.At(i).Data); err != nil {
			return err
		}
	}
	first := o.count == 0
	o.count += hi - lo
	o.last, o.label = b.Place[hi-1], b.Label[hi-1]
	if o.last == min((block+1)*a.site.Layout.Block, a.site.Layout.N)-1 {
		o.clean = b.Clean.At(hi - 1).Data
		delete(a.open, block)
		return a.closeBlock(&a.null, block, o)
	}
	// The memory of the batch is valid during Update only.
	o.clean = append(o.clean[:0], b.Clean.At(hi-1).Data...)
	if first {
		o.transformed = slices.Clone(o.transformed)
		a.open[block] = o
	}
	return nil
}

// closeBlock pairs a block's last clean row with its first transformed row.
func (a *accumulator) closeBlock(t *table, block int, o *openPair) error {
	if o.count < 2 {
		return nil
	}
	return a.addShuffled(t, block, o.label, o.clean, o.transformed)
}

func (a *accumulator) addShuffled(t *table, block, label int, clean, transformed []float32) error {
	if err := a.spec.Pair(a.out, label, clean, transformed); err != nil {
		return err
	}
	a.addTo(t, a.site.Layout.Group(block*a.site.Layout.Block), label)
	return nil
}
