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
	"sync"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
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
	// Action, if set, takes the place of Pair: it returns what computes the columns at a site.
	Action func(site measure.Site) (Action, error)
	// LeftOut is why an Action leaves out samples, for a warning.
	LeftOut string
	// Skip, if set, returns why a site cannot be measured, or "".
	Skip func(site measure.Site) string
	// PerClass asks for scores of each class as well, where the site has classes.
	PerClass bool
}

// An Action computes columns of pairs of which the clean row is changed by the transformation of
// its sample before it is compared: tau z in place of z. It is used by one goroutine at a time.
type Action interface {
	// Len returns the number of values of tau z.
	Len() int
	// Act writes tau z of a sample to dst, and sets the columns that depend on z and T alone. It
	// returns ErrLeftOut if the sample has no columns.
	Act(dst []float32, out []float64, z []float32, op transform.Op) error
	// Pair sets the other columns, of tau z and a transformed row: that of the same sample, or, for
	// the null, of another.
	Pair(out []float64, acted, transformed []float32) error
}

// ErrLeftOut is returned by an Action for a sample that has no columns.
var ErrLeftOut = errors.New("the sample is left out")

// method is the measure of a Spec. It implements measure.Measure and measure.Borrower.
type method struct {
	spec Spec
	rows sync.Pool // of *[]float32: memory for tau z, needed during Update only
}

// New returns the measure of a spec.
func New(spec Spec) measure.Measure { return &method{spec: spec} }

func (m *method) Name() string                   { return m.spec.Descriptor.Name }
func (m *method) Descriptor() measure.Descriptor { return m.spec.Descriptor }
func (m *method) Version() int                   { return m.spec.Version }
func (m *method) Settings() any                  { return m.spec.Settings }
func (m *method) Needs() measure.Needs           { return m.spec.Needs }

func (m *method) Skip(s measure.Site) string {
	if m.spec.Needs.Prediction && len(s.Classes) < 2 {
		return "the model's output is not a score for each of several classes"
	}
	if m.spec.Skip != nil {
		return m.spec.Skip(s)
	}
	return ""
}

// Borrowed implements measure.Borrower: an Action computes in two rows.
func (m *method) Borrowed(s measure.Site) int64 { return 2 * 4 * m.spec.acted(s) }

func (m *method) Cost(s measure.Site) int64 { return m.spec.cost(s) }

func (m *method) New(s measure.Site) (measure.Accumulator, error) {
	a := newAccumulator(&m.spec, s)
	if m.spec.Action == nil {
		return a, nil
	}
	a.rows = &m.rows
	var err error
	a.action, err = m.spec.Action(s)
	return a, err
}

// acted returns the number of values of tau z, 0 without an Action.
func (s *Spec) acted(site measure.Site) int64 {
	if s.Action == nil {
		return 0
	}
	action, err := s.Action(site)
	if err != nil {
		return 0
	}
	return int64(action.Len())
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

// projects reports whether an accumulator stores a projection of the layer.
func (s *Spec) projects(site measure.Site) bool { return site.Project > 0 && !s.Needs.Prediction }

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
		n := site.Layout.N
		if site.KeepBelow > 0 {
			n = min(n, site.KeepBelow)
		}
		cost += 2 * 8 * int64(n) * int64(1+s.samplesKept()) // twice: a growing slice is copied
	}
	if s.projects(site) {
		cost += projectionCost(site.Layer, site.Project)
	}
	if s.hasNull() {
		cost += table + 4*int64(width) + 4*max(int64(width), s.acted(site))
	}
	return cost
}

// An accumulator sums the columns of a Spec at a site. It implements measure.Accumulator and
// measure.Sampler.
type accumulator struct {
	spec        *Spec
	site        measure.Site
	action      Action     // nil: Spec.Pair serves
	rows        *sync.Pool // of the method, for an Action
	width       int        // values in a row; 0 until the first batch
	transformed bool       // whether there is a transformed view; set by the first batch

	values  table
	classes []int // number of clean samples by predicted class; nil unless Needs.Prediction
	null    table
	dropped bool              // whether the null is omitted, to stay within the budget
	open    map[int]*openPair // by block; blocks that are complete are removed
	out     []float64         // scratch

	leftOut int // number of samples that the Action has left out

	index []int     // indices of the samples whose values are stored
	kept  []float64 // len(index) x samplesKept

	projection *projection // nil unless the site asks for it
}

// An openPair holds the rows of an incomplete block that are not yet paired for the null.
type openPair struct {
	last        int       // place of the latest sample
	count       int       // samples so far
	label       int       // of the latest sample
	clean       []float32 // the latest sample's clean row, or tau z
	transformed []float32 // the first sample's transformed row
	// The rows are memory that is valid during Update only.
	cleanBorrowed, transformedBorrowed bool
	copied                             []float32 // memory for a copy of clean
}

// newAccumulator returns an empty accumulator. If the null would exceed the site's budget, there is no
// null, and the scores have a warning.
func newAccumulator(spec *Spec, site measure.Site) *accumulator {
	parts, groups, columns := spec.parts(site), site.Layout.Groups, len(spec.Columns)
	a := &accumulator{spec: spec, site: site, values: newTable(parts, groups, columns), out: make([]float64, columns)}
	if spec.projects(site) {
		a.projection = newProjection(site.Layer)
	}
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
	next, free := a.borrowRows()
	defer free()
	var latest *openPair // of the block of the latest sample; nil if it is complete
	for i := range b.Place {
		row := next(b, i)
		err := a.addSample(b, i, row)
		if err != nil && err != ErrLeftOut {
			return err
		}
		if a.open == nil || !a.transformed {
			continue
		}
		if latest != nil && latest.last/a.site.Layout.Block != b.Place[i]/a.site.Layout.Block {
			latest.own()
		}
		if err == ErrLeftOut {
			if latest, err = a.passOver(b.Place[i]); latest != nil {
				latest.own() // the next sample may use its row
			}
		} else {
			latest, err = a.shuffle(b, i, row)
		}
		if err != nil {
			return err
		}
	}
	if latest != nil {
		latest.own()
	}
	return nil
}

// borrowRows returns a function that returns the row of sample i that is paired, and a function that
// frees the memory. A row is valid during the next call of the first one too. It is the clean row,
// or room for tau z.
func (a *accumulator) borrowRows() (next func(b *measure.Batch, i int) []float32, free func()) {
	if a.action == nil {
		return func(b *measure.Batch, i int) []float32 { return b.Clean.At(i).Data }, func() {}
	}
	n := a.action.Len()
	rows, _ := a.rows.Get().(*[]float32)
	if rows == nil || cap(*rows) < 2*n {
		rows = new([]float32)
		*rows = make([]float32, 2*n)
	}
	two := (*rows)[:2*n]
	next = func(_ *measure.Batch, i int) []float32 { return two[i%2*n : i%2*n+n] }
	return next, func() { a.rows.Put(rows) }
}

// own copies rows that are valid during Update only.
func (o *openPair) own() {
	if o.cleanBorrowed {
		o.copied = append(o.copied[:0], o.clean...)
		o.clean, o.cleanBorrowed = o.copied, false
	}
	if o.transformedBorrowed {
		o.transformed, o.transformedBorrowed = slices.Clone(o.transformed), false
	}
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
	if a.action != nil && len(b.Ops) != n {
		return fmt.Errorf("%s needs the transformation of each sample, but the batch has %d of %d", a.spec.Descriptor.Name, len(b.Ops), n)
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

// addSample adds sample i of a batch to the sums. With an Action it writes tau z to row; else row is
// the clean row.
func (a *accumulator) addSample(b *measure.Batch, i int, row []float32) error {
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
	if err := a.compute(b, i, label, row, transformed); err != nil {
		if err == ErrLeftOut {
			a.leftOut++
			return err
		}
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
	if a.projection != nil && b.Place[i] < a.site.Project && transformed != nil {
		a.projection.add(b.Index[i], b.Clean.At(i).Data, transformed)
	}
	if a.site.KeepSamples && (a.site.KeepBelow == 0 || b.Place[i] < a.site.KeepBelow) {
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

// compute computes the columns of sample i of a batch.
func (a *accumulator) compute(b *measure.Batch, i, label int, row, transformed []float32) error {
	if a.action == nil {
		return a.spec.Pair(a.out, label, row, transformed)
	}
	if err := a.action.Act(row, a.out, b.Clean.At(i).Data, b.Ops[i]); err != nil {
		return err
	}
	return a.action.Pair(a.out, row, transformed)
}

// shuffle adds the shuffled pair of sample i of a batch and the sample before it in its block, whose
// rows it replaces. It returns the open pair, or nil if the block is complete.
func (a *accumulator) shuffle(b *measure.Batch, i int, row []float32) (*openPair, error) {
	place := b.Place[i]
	block := place / a.site.Layout.Block
	o := a.open[block]
	if o == nil {
		o = &openPair{transformed: b.Transformed.At(i).Data, transformedBorrowed: true}
		a.open[block] = o
	} else {
		if place <= o.last {
			return nil, fmt.Errorf("place %d of block %d comes after place %d", place, block, o.last)
		}
		if err := a.addShuffled(&a.null, block, o.label, o.clean, b.Transformed.At(i).Data); err != nil {
			return nil, err
		}
	}
	o.count++
	o.last, o.label, o.clean, o.cleanBorrowed = place, b.Label[i], row, true
	return a.advance(o, block)
}

// passOver notes that the sample at a place has no columns. It returns the open pair of its block,
// or nil if there is none or the block is complete.
func (a *accumulator) passOver(place int) (*openPair, error) {
	block := place / a.site.Layout.Block
	o := a.open[block]
	if o == nil {
		return nil, nil
	}
	if place <= o.last {
		return nil, fmt.Errorf("place %d of block %d comes after place %d", place, block, o.last)
	}
	o.last = place
	return a.advance(o, block)
}

// advance closes a block after its last sample. It returns the open pair, or nil if it was closed.
func (a *accumulator) advance(o *openPair, block int) (*openPair, error) {
	if o.last < min((block+1)*a.site.Layout.Block, a.site.Layout.N)-1 {
		return o, nil
	}
	delete(a.open, block)
	return nil, a.closeBlock(&a.null, block, o)
}

// closeBlock pairs a block's last clean row with its first transformed row.
func (a *accumulator) closeBlock(t *table, block int, o *openPair) error {
	if o.count < 2 {
		return nil
	}
	return a.addShuffled(t, block, o.label, o.clean, o.transformed)
}

func (a *accumulator) addShuffled(t *table, block, label int, clean, transformed []float32) error {
	var err error
	if a.action != nil {
		err = a.action.Pair(a.out, clean, transformed)
	} else {
		err = a.spec.Pair(a.out, label, clean, transformed)
	}
	if err != nil {
		return err
	}
	a.addTo(t, a.site.Layout.Group(block*a.site.Layout.Block), label)
	return nil
}
