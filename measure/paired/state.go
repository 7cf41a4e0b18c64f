package paired

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
)

var errOtherSite = errors.New("the state belongs to another layer or study: its numbers of samples, classes or values differ")

// Merge adds the state of another accumulator of the same Spec and site, for other samples. A block
// must not be open in both.
func (a *accumulator) Merge(other measure.Accumulator) error {
	o, ok := other.(*accumulator)
	if !ok || o.spec.Descriptor.Name != a.spec.Descriptor.Name || len(o.values.sum) != len(a.values.sum) || a.site.Layout != o.site.Layout {
		return fmt.Errorf("merging %s: %w", a.spec.Descriptor.Name, errOtherSite)
	}
	if o.width == 0 {
		return nil
	}
	if a.width == 0 {
		a.width, a.transformed = o.width, o.transformed
	}
	if a.width != o.width || a.transformed != o.transformed {
		return fmt.Errorf("merging %s: %w", a.spec.Descriptor.Name, errOtherSite)
	}
	for block := range o.open {
		if a.open[block] != nil {
			return fmt.Errorf("merging %s: both states have samples of block %d", a.spec.Descriptor.Name, block)
		}
	}
	a.values.merge(&o.values)
	for k, n := range o.classes {
		a.classes[k] += n
	}
	if o.dropped {
		a.dropNull()
	}
	if !a.dropped {
		a.null.merge(&o.null)
		for block, p := range o.open {
			a.open[block] = &openPair{last: p.last, count: p.count, label: p.label, clean: slices.Clone(p.clean), transformed: slices.Clone(p.transformed)}
		}
	}
	a.leftOut += o.leftOut
	a.index = append(a.index, o.index...)
	a.kept = append(a.kept, o.kept...)
	if a.projection != nil && o.projection != nil {
		a.projection.merge(o.projection)
	}
	return nil
}

// dropNull removes a null that would exceed the budget.
func (a *accumulator) dropNull() {
	a.dropped, a.null, a.open = true, table{}, nil
}

// MarshalBinary returns the state. Some fields are conditional: leftOut (action) counts samples
// without columns, classes (predictions) samples by predicted class; index and kept are stored
// samples and their values; values and null are tables for each part; projection is for the site's
// plane.
func (a *accumulator) MarshalBinary() ([]byte, error) {
	w := state.NewWriter(a.spec.Descriptor.Name, a.spec.StateVersion)
	w.Int(a.width)
	w.Bool(a.transformed)
	w.Bool(a.dropped)
	if a.action != nil {
		w.Int(a.leftOut)
	}
	a.values.write(w)
	if a.spec.Needs.Prediction {
		w.Ints(a.classes)
	}
	a.null.write(w)
	w.Int(len(a.open))
	for _, block := range slices.Sorted(maps.Keys(a.open)) {
		o := a.open[block]
		w.Ints([]int{block, o.last, o.count, o.label})
		w.Float32s(o.clean)
		w.Float32s(o.transformed)
	}
	w.Ints(a.index)
	w.Floats(a.kept)
	if a.projection != nil {
		a.projection.write(w)
	}
	return w.Bytes(), nil
}

// UnmarshalBinary leaves the accumulator unchanged after an error.
func (a *accumulator) UnmarshalBinary(data []byte) error {
	r, err := state.NewReader(data, a.spec.Descriptor.Name, a.spec.StateVersion)
	if err != nil {
		return err
	}
	site := a.site
	site.Budget = 0 // whether there is a null is part of the state
	b := newAccumulator(a.spec, site)
	b.site, b.action, b.rows = a.site, a.action, a.rows
	b.width, b.transformed = r.Int(), r.Bool()
	if r.Bool() {
		b.dropNull()
	}
	if b.action != nil {
		if b.leftOut = r.Int(); b.leftOut < 0 {
			r.Fail(errOtherSite)
		}
	}
	b.values.read(r)
	if a.spec.Needs.Prediction {
		if b.classes = r.Ints(); len(b.classes) != len(a.site.Classes) {
			r.Fail(errOtherSite)
			b.classes = make([]int, len(a.site.Classes))
		}
	}
	b.null.read(r)
	b.readOpen(r)
	b.index, b.kept = r.Ints(), r.Floats()
	if b.projection != nil {
		b.projection.read(r, a.site.Project)
	}
	low, high := 0, 0 // number of samples with stored values
	if a.site.KeepSamples {
		low, high = b.values.n(0), b.values.n(0)
	}
	if a.site.KeepSamples && a.site.KeepBelow > 0 {
		low, high = 0, min(high, a.site.KeepBelow)
	}
	if b.width < 0 || len(b.index) < low || len(b.index) > high || len(b.kept) != len(b.index)*a.spec.storedColumns() {
		r.Fail(errOtherSite)
	}
	if err := r.Close(); err != nil {
		return err
	}
	*a = *b
	return nil
}

func (a *accumulator) readOpen(r *state.Reader) {
	for range r.Int() {
		head, o := r.Ints(), &openPair{}
		o.clean, o.transformed = r.Float32s(), r.Float32s()
		if len(head) != 4 || a.open == nil || !a.setOpen(head, o) {
			r.Fail(errOtherSite)
			return
		}
		a.open[head[0]] = o
	}
}

// setOpen sets an open block from head: block, latest place, number of samples, latest label (-1:
// none). It reports whether they are valid.
func (a *accumulator) setOpen(head []int, o *openPair) bool {
	o.last, o.count, o.label = head[1], head[2], head[3]
	layout := a.site.Layout
	return o.last >= 0 && o.last < layout.N && o.last/layout.Block == head[0] && o.count > 0 && o.count <= layout.Block &&
		o.label >= -1 && (a.values.parts == 1 || o.label < len(a.site.Classes)) && a.width > 0 && len(o.clean) == a.pairedWidth() && len(o.transformed) == a.width
}

func (a *accumulator) pairedWidth() int {
	if a.action != nil {
		return a.action.Len()
	}
	return a.width
}
