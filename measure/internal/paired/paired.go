// Package paired is the accumulator beneath every measure whose statistics are means, over samples, of a function of
// two vectors: what the model gives for x and what it gives for T(x).
//
// A measure supplies that function and describes its columns; this package keeps their sums, and gives the
// means with all that a score carries:
//
//   - an interval: Wilson's for proportions, else the delete-group jackknife over the groups of the Layout, clipped to
//     the range of the statistic. The jackknife's replicates come with every score.
//   - a null: the same function on shuffled pairs. The clean vector of a sample is paired with the moved vector of
//     the next one in its block, and that of the block's last with the block's first. The order of samples is a keyed
//     permutation (see measure.Layout), so the next sample is a random other one; no sample is its own partner, each
//     is used once on each side, and nothing but two vectors of an unfinished block needs keeping. A block of a single
//     sample has no part in it.
//   - the same for each class of labels, and the terms of the means sample by sample, where asked for.
package paired

import (
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
)

// A Column is one number that a Spec computes for a pair.
type Column struct {
	Statistic  string  // its name in scores; "": it is no statistic
	Sample     string  // its name among per-sample values; "": it is not kept
	Min, Max   float64 // the range of values, which intervals are clipped to
	Proportion bool    // each value is 0 or 1
	Difference bool    // each value is -1, 0 or 1: the difference of two proportions
	Null       bool    // chance alone gives something other than the best or the worst value
	Moved      bool    // needs the moved view
}

// A Spec is a measure's part of the work.
type Spec struct {
	Kind    string // of serialised states: the measure's name
	Version int    // of serialised states
	Columns []Column
	// Pair computes the columns of one pair. Moved is nil where there is no moved view. An error that is a
	// *measure.NonFinite need not know the sample.
	Pair func(out []float64, label int, clean, moved []float32) error
	// ClassRows says that a row has one value for each class of the site.
	ClassRows bool
	// Labels says that Pair wants a label.
	Labels bool
	// CleanServes says that the columns which do not need the moved view are worth having alone.
	CleanServes bool
	// PerClass asks for scores of each class beside those of all samples, where the site has classes.
	PerClass bool
}

func (s *Spec) hasNull() bool {
	return slices.ContainsFunc(s.Columns, func(c Column) bool { return c.Null })
}

func (s *Spec) samplesKept() int {
	n := 0
	for _, c := range s.Columns {
		if c.Sample != "" {
			n++
		}
	}
	return n
}

func (s *Spec) parts(site measure.Site) int {
	if s.PerClass {
		return 1 + len(site.Classes)
	}
	return 1
}

// Cost bounds the bytes of an accumulator whose rows are width values wide.
func (s *Spec) Cost(site measure.Site, width int) int64 {
	cost := s.costWithoutNull(site)
	if s.hasNull() {
		cost += s.tableCost(site) + 2*4*int64(width)
	}
	return cost
}

func (s *Spec) costWithoutNull(site measure.Site) int64 {
	cost := s.tableCost(site)
	if site.KeepSamples {
		cost += 2 * 8 * int64(site.Layout.N) * int64(1+s.samplesKept()) // twice: a growing slice is copied
	}
	return cost
}

func (s *Spec) tableCost(site measure.Site) int64 {
	cost := 8 * int64(s.parts(site)*site.Layout.Groups) * int64(1+len(s.Columns))
	if s.ClassRows {
		cost += 8 * int64(len(site.Classes))
	}
	return cost
}

// An Accumulator gathers the columns of a Spec at a site. It implements measure.Accumulator and measure.Sampler.
type Accumulator struct {
	spec  *Spec
	site  measure.Site
	width int  // values in a row; 0 until the first batch
	moved bool // the moved view is fed; settled by the first batch

	values  table
	classes []int // samples by predicted class of the clean view; nil unless rows are scores of classes
	null    table
	dropped bool              // the null was given up to stay within the budget
	open    map[int]*openPair // by block: what its next sample is to be paired with
	out     []float64         // scratch

	index []int     // of the samples whose values are kept
	kept  []float64 // len(index) x samplesKept
}

// An openPair is what a block that is not complete yet keeps for the null.
type openPair struct {
	last  int       // place of the latest sample
	count int       // samples so far
	label int       // of the latest sample
	clean []float32 // the latest sample's clean row
	moved []float32 // the first sample's moved row
}

// New returns an empty accumulator. Where the site has a budget that the null would exceed, there will be none,
// and a warning. Width is that of a row where it is known, else 0.
func New(spec *Spec, site measure.Site, width int) *Accumulator {
	parts, groups, columns := spec.parts(site), site.Layout.Groups, len(spec.Columns)
	a := &Accumulator{spec: spec, site: site, values: newTable(parts, groups, columns), out: make([]float64, columns)}
	if spec.ClassRows {
		a.classes = make([]int, len(site.Classes))
	}
	if spec.hasNull() {
		a.dropped = site.Budget > 0 && spec.Cost(site, width) > site.Budget
		if !a.dropped {
			a.null = newTable(parts, groups, columns)
			a.open = map[int]*openPair{}
		}
	}
	return a
}

// Update adds the samples of a batch.
func (a *Accumulator) Update(b *measure.Batch) error {
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
	if a.open == nil || !a.moved {
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

// check holds a batch against the contract and against those before it.
func (a *Accumulator) check(b *measure.Batch) error {
	n, moved := len(b.Place), b.Moved.Len() > 0
	if b.Clean.Rank() == 0 || b.Clean.Shape[0] != n || len(b.Index) != n || len(b.Label) != n {
		return fmt.Errorf("a batch of %d places has %d indices, %d labels and activations of shape %v", n, len(b.Index), len(b.Label), b.Clean.Shape)
	}
	if moved && !slices.Equal(b.Clean.Shape, b.Moved.Shape) {
		return fmt.Errorf("the clean view has shape %v and the moved view %v; they must be equal to be compared", b.Clean.Shape, b.Moved.Shape)
	}
	if !moved && !a.spec.CleanServes {
		return fmt.Errorf("%s compares two views; the batch has no moved view", a.spec.Kind)
	}
	width := b.Clean.Len() / n
	if width == 0 {
		return fmt.Errorf("activations of shape %v hold no values", b.Clean.Shape)
	}
	if classes := len(a.site.Classes); a.spec.ClassRows && width != classes {
		return fmt.Errorf("a prediction of %d values for a model of %d classes", width, classes)
	}
	if a.width == 0 {
		a.width, a.moved = width, moved
	}
	if a.width != width || a.moved != moved {
		return fmt.Errorf("a sample of %d values (moved view: %v) after samples of %d (moved view: %v)", width, moved, a.width, a.moved)
	}
	for i, p := range b.Place {
		if p < 0 || p >= a.site.Layout.N || i > 0 && p <= b.Place[i-1] {
			return fmt.Errorf("place %d in a layout of %d samples: places must ascend within it", p, a.site.Layout.N)
		}
	}
	return nil
}

// addSample adds sample i of a batch to the sums.
func (a *Accumulator) addSample(b *measure.Batch, i int) error {
	label, classes := b.Label[i], len(a.site.Classes)
	if a.spec.Labels && label == dataset.NoLabel {
		return fmt.Errorf("sample %d has no label, and %s needs one", b.Index[i], a.spec.Kind)
	}
	if (a.spec.Labels || a.values.parts > 1) && label != dataset.NoLabel && (label < 0 || label >= classes) {
		return fmt.Errorf("sample %d has label %d; the model has %d classes, so labels run from 0 to %d", b.Index[i], label, classes, classes-1)
	}
	var moved []float32
	if a.moved {
		moved = b.Moved.At(i).Data
	}
	if err := a.spec.Pair(a.out, label, b.Clean.At(i).Data, moved); err != nil {
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
func (a *Accumulator) addTo(t *table, group, label int) {
	t.add(0, group, a.out)
	if t.parts > 1 && label != dataset.NoLabel {
		t.add(1+label, group, a.out)
	}
}

// shuffle adds the shuffled pairs of samples lo to hi of a batch, all of one block.
func (a *Accumulator) shuffle(b *measure.Batch, block, lo, hi int) error {
	o := a.open[block]
	if o == nil {
		o = &openPair{moved: b.Moved.At(lo).Data}
	} else {
		if b.Place[lo] <= o.last {
			return fmt.Errorf("place %d of block %d comes after place %d", b.Place[lo], block, o.last)
		}
		if err := a.addShuffled(&a.null, block, o.label, o.clean, b.Moved.At(lo).Data); err != nil {
			return err
		}
	}
	for i := lo + 1; i < hi; i++ {
		if err := a.addShuffled(&a.null, block, b.Label[i-1], b.Clean.At(i-1).Data, b.Moved.At(i).Data); err != nil {
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
	// The batch's memory is the caller's again once Update returns.
	o.clean = append(o.clean[:0], b.Clean.At(hi-1).Data...)
	if first {
		o.moved = slices.Clone(o.moved)
		a.open[block] = o
	}
	return nil
}

// closeBlock pairs a block's last clean row with its first moved row.
func (a *Accumulator) closeBlock(t *table, block int, o *openPair) error {
	if o.count < 2 {
		return nil
	}
	return a.addShuffled(t, block, o.label, o.clean, o.moved)
}

func (a *Accumulator) addShuffled(t *table, block, label int, clean, moved []float32) error {
	if err := a.spec.Pair(a.out, label, clean, moved); err != nil {
		return err
	}
	a.addTo(t, a.site.Layout.Group(block*a.site.Layout.Block), label)
	return nil
}
