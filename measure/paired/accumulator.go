package paired

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/noether-ml/noether/measure"
)

// A row is a sample's vector, clean or transformed; with an Action the clean row z is replaced by
// tau z. A pair of rows gives the columns. The null is their mean over shuffled pairs of a block.

// An accumulator sums the columns of a Spec at a site. It implements measure.Sampler.
type accumulator struct {
	spec        *Spec
	site        measure.Site
	action      Action     // nil: Spec.Pair is used
	rows        *sync.Pool // the method's pool of memory for tau z; needed for an Action only
	width       int        // values in a row; 0 until the first batch
	transformed bool       // whether there is a transformed view; set by the first batch

	values  table             // of pairs of the same sample
	classes []int             // number of clean samples by predicted class; nil unless Needs.Prediction
	null    table             // of shuffled pairs
	dropped bool              // whether the null is omitted, to stay within the budget
	open    map[int]*openPair // by block: rows to be paired; blocks that are complete are removed
	spare   openPair          // the last of those removed, whose memory the next one uses
	out     []float64         // columns of the current pair

	leftOut int // number of samples without columns; see ErrLeftOut

	index []int     // indices of the samples whose values are stored
	kept  []float64 // their values: len(index) x Spec.storedColumns

	projection *projection // onto principal components, for a picture; nil unless the site asks for it
}

// Tables have sums for each part (all samples or a class) and jackknife group. A null that exceeds
// the site's budget is left out, with a warning.
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

func (a *accumulator) Update(b *measure.Batch) error {
	if len(b.Place) == 0 {
		return nil
	}
	if b.Reduced.Rank() > 0 {
		return a.updateReduced(b)
	}
	if err := a.check(b); err != nil {
		return err
	}
	next, free := a.borrowRows()
	defer free()
	var latest *openPair // of the block of the latest sample; nil if it is complete
	var rows rowColumns
	for i := range b.Place {
		if a.spec.PairRows != nil && a.transformed && i >= rows.to {
			rows.compute(a, b, i)
		}
		row := next(b, i)
		own, shuffled := rows.of(i)
		err := a.addSample(b, i, row, own)
		if err != nil && err != ErrLeftOut {
			return err
		}
		if a.open == nil || !a.transformed {
			continue
		}
		if latest != nil && latest.last/a.site.Layout.Block != b.Place[i]/a.site.Layout.Block {
			latest.copyBorrowed()
		}
		if err == ErrLeftOut {
			if latest, err = a.skipSample(b.Place[i]); latest != nil {
				latest.copyBorrowed() // the next sample may use its row
			}
		} else {
			latest, err = a.shuffle(b, i, row, shuffled)
		}
		if err != nil {
			return err
		}
	}
	if latest != nil {
		latest.copyBorrowed()
	}
	return nil
}

// borrowRows returns next, which gives the row to pair with the transformed row of sample i (clean,
// or memory for tau z), valid until the second next call after it, and free, which returns the
// memory.
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
	if a.action != nil && !a.spec.Needs.OtherModel && len(b.Motions) != n {
		return fmt.Errorf("%s needs the transformation of each sample, but the batch has %d of %d", a.spec.Descriptor.Name, len(b.Motions), n)
	}
	if !transformed && !a.spec.Needs.TransformOptional {
		return fmt.Errorf("%s compares two views, but the batch has no transformed view", a.spec.Descriptor.Name)
	}
	width := b.Clean.Len() / n
	if width == 0 {
		return fmt.Errorf("activations of shape %v are empty", b.Clean.Shape)
	}
	if classes := len(a.site.Classes); a.spec.Needs.Prediction && width != classes {
		return fmt.Errorf("a prediction of %d values for a model of %d classes", width, classes)
	}
	if err := a.setWidth(width, transformed); err != nil {
		return err
	}
	return a.checkPlaces(b.Place)
}

// setWidth sets the values of a row, and whether there is a transformed view; they may not change.
func (a *accumulator) setWidth(width int, transformed bool) error {
	if a.width == 0 {
		a.width, a.transformed = width, transformed
	}
	if a.width != width || a.transformed != transformed {
		return fmt.Errorf("a sample of %d values (transformed view: %v) after samples of %d (transformed view: %v)", width, transformed, a.width, a.transformed)
	}
	return nil
}

func (a *accumulator) checkPlaces(places []int) error {
	for i, p := range places {
		if p < 0 || p >= a.site.Layout.N || i > 0 && p <= places[i-1] {
			return fmt.Errorf("place %d in a layout of %d samples: places must be ascending and in its range", p, a.site.Layout.N)
		}
	}
	return nil
}

// addSample adds sample i of a batch to the sums. With an Action it writes tau z to row, else the
// clean row. own holds its columns or is nil. ErrLeftOut: it has none.
func (a *accumulator) addSample(b *measure.Batch, i int, row []float32, own []float64) error {
	label, classes := b.Label[i], len(a.site.Classes)
	if a.spec.Needs.Labels && label == measure.NoLabel {
		return fmt.Errorf("sample %d has no label, but %s needs one", b.Index[i], a.spec.Descriptor.Name)
	}
	if (a.spec.Needs.Labels || a.values.parts > 1 || a.spec.usesLabels()) && label != measure.NoLabel && (label < 0 || label >= classes) {
		return fmt.Errorf("sample %d has label %d; the model has %d classes, so labels must be 0 to %d", b.Index[i], label, classes, classes-1)
	}
	var transformed []float32
	if b.Transformed.Len() > 0 {
		transformed = b.Transformed.At(i).Data
	}
	if own != nil {
		copy(a.out, own)
	} else if err := a.compute(b, i, label, row, transformed); err != nil {
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
	if a.projection != nil && b.Place[i] < a.site.Project {
		switch {
		case b.Reduced.Rank() > 0:
			a.projection.addPooled(b.Index[i], b.Reduced.At(i).Data[len(a.spec.Reduction.Sums):])
		case transformed != nil:
			a.projection.add(b.Index[i], b.Clean.At(i).Data, transformed)
		}
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

func (a *accumulator) compute(b *measure.Batch, i, label int, row, transformed []float32) error {
	if a.action == nil {
		return a.spec.Pair(a.out, label, row, transformed)
	}
	var move measure.Motion // nil: nothing moves between two models, which get the same input
	if !a.spec.Needs.OtherModel {
		move = b.Motions[i]
	}
	if err := a.action.Act(row, a.out, b.Clean.At(i).Data, move); err != nil {
		return err
	}
	return a.action.Pair(a.out, row, transformed)
}

// addTo adds the columns in a.out to all samples' sums and to those of the label's class.
func (a *accumulator) addTo(t *table, group, label int) {
	t.add(0, group, a.out)
	if t.parts > 1 && label != measure.NoLabel {
		t.add(1+label, group, a.out)
	}
}
