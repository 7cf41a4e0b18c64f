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

// Code writes or reads the state. Some fields are conditional: leftOut (action) counts samples
// without columns, classes (predictions) samples by predicted class; index and kept are stored
// samples and their values; values and null are tables for each part; projection is for the site's
// plane.
func (a *accumulator) Code(c *state.Codec) {
	c.Values(&a.width, &a.transformed, &a.dropped)
	if c.Reads() && a.dropped {
		a.dropNull()
	}
	if a.action != nil {
		c.Len(&a.leftOut, a.site.Layout.N)
	}
	c.Values(&a.values)
	if a.spec.Needs.Prediction {
		c.Values(a.classes)
	}
	c.Values(&a.null)
	a.codeOpen(c)
	c.Values(&a.index, &a.kept)
	if a.projection != nil {
		a.projection.code(c, a.site.Project)
	}
	low, high := 0, 0 // number of samples with stored values
	if a.site.KeepSamples {
		low, high = a.values.n(0), a.values.n(0)
	}
	if a.site.KeepSamples && a.site.KeepBelow > 0 {
		low, high = 0, min(high, a.site.KeepBelow)
	}
	n := len(a.index)
	c.Check(a.width >= 0 && n >= low && n <= high && len(a.kept) == n*a.spec.storedColumns(), "%w",
		errOtherSite)
}

func (a *accumulator) MarshalBinary() ([]byte, error) {
	return state.Marshal(a.spec.Descriptor.Name, a.spec.StateVersion, a.Code)
}

// UnmarshalBinary leaves the accumulator unchanged after an error.
func (a *accumulator) UnmarshalBinary(data []byte) error {
	site := a.site
	site.Budget = 0 // whether there is a null is part of the state
	b := newAccumulator(a.spec, site)
	b.site, b.action, b.rows = a.site, a.action, a.rows
	if err := state.Unmarshal(data, a.spec.Descriptor.Name, a.spec.StateVersion,
		b.Code); err != nil {
		return err
	}
	*a = *b
	return nil
}

func (a *accumulator) codeOpen(c *state.Codec) {
	blocks := slices.Sorted(maps.Keys(a.open))
	n := len(blocks)
	for i := range c.Len(&n, a.site.Layout.N) {
		head, o := make([]int, 4), &openPair{}
		if !c.Reads() {
			o = a.open[blocks[i]]
			head = []int{blocks[i], o.last, o.count, o.label}
		}
		c.Values(head, &o.clean, &o.transformed)
		if c.Reads() && !c.Failed() {
			if a.open == nil || !a.setOpen(head, o) {
				c.Fail(errOtherSite)
				return
			}
			a.open[head[0]] = o
		}
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
