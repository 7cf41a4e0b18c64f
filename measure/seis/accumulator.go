package seis

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// An accumulator holds second moments of (z, z') over observations, and an unfinished segment. An
// observation is one channel of one sample, with d values in each, one for each position.
type accumulator struct {
	measure        *seis
	site           measure.Site // what is measured: a layer of a model under a transformation
	maps           featureMaps
	poolingWarning string // warning that the feature maps are pooled; empty: they are not
	parts          parts  // how samples are divided into segments

	// of all observations or, with groups, of the open group alone
	total   *linalg.Scatter[float64]
	null    *linalg.CrossScatter[float64] // of shuffled pairs (z of one sample, z' of another); nil if the settings ask for no null
	groups  *groups                       // for the interval; empty if there is no interval
	segment segment                       // that is being filled
	clean   *cleanView                    // results of clean activations, shared in the layer

	// pending holds moments that withPending has added to the total, but not to group pendingGroup;
	// nil: none.
	pending      *linalg.Scatter[float32]
	pendingGroup int
}

// A segment holds consecutive samples, whose products are added to the moments together.
type segment struct {
	from, to int       // half-open range of places
	last     int       // place of the last sample
	samples  int       // number of samples added so far; 0: the segment is empty
	counts   []int     // the same for each part of the range (see parts)
	rows     []float32 // the observations (z, z') of the samples, 2 d values each
	sum      []float64 // sum of the observations: 2 d
}

func newAccumulator(m *seis, s measure.Site, p featureMaps, clean *cleanView) *accumulator {
	d := p.positions()
	a := &accumulator{
		measure: m, site: s, maps: p, poolingWarning: p.poolingWarning(),
		total: linalg.NewScatter[float64](2 * d), clean: clean,
	}
	if m.settings.Null {
		a.null = linalg.NewCrossScatter[float64](d, d)
	}
	a.groups = newGroups(m.groups(s, p), s.Layout, p.channels, a.total, s.Store)
	a.parts = m.parts(s.Layout, p.channels)
	return a
}

func (a *accumulator) Update(b *measure.Batch) error {
	if err := checkBatch(a.site, b); err != nil {
		return err
	}
	a.clean.reserve(len(b.Place)/(a.parts.size*a.parts.joined) + 2)
	for i, place := range b.Place {
		// The last samples of a segment are missing if they could not be read.
		if a.segment.samples > 0 && place >= a.segment.to {
			if err := a.flush(); err != nil {
				return err
			}
		}
		if err := a.segment.startSample(place, a); err != nil {
			return err
		}
		if err := a.appendSample(b, i); err != nil {
			return err
		}
		if place == a.segment.to-1 {
			if err := a.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *accumulator) appendSample(b *measure.Batch, i int) error {
	size := a.valuesOf(1)
	rows := a.segment.rows[a.segment.samples*size : (a.segment.samples+1)*size]
	a.segment.samples++
	a.segment.counts[a.parts.index(b.Place[i])-a.parts.index(a.segment.from)]++
	return a.maps.observe(rows, a.segment.sum, b, i)
}

// checkBatch checks places and shapes before any sample is used.
func checkBatch(s measure.Site, b *measure.Batch) error {
	for i := 1; i < len(b.Place); i++ {
		if b.Place[i] <= b.Place[i-1] {
			return outOfOrder(b.Place[i], b.Place[i-1])
		}
	}
	for _, v := range []struct {
		name string
		z    tensor.Tensor
	}{{"clean", b.Clean}, {"transformed", b.Transformed}} {
		if v.z.Rank() == 0 || v.z.Shape[0] != len(b.Place) || !slices.Equal(v.z.Shape[1:], s.Layer.Shape) {
			return fmt.Errorf("seis: the %s activations of %d samples have shape %v; layer %q has %v for each sample", v.name, len(b.Place), v.z.Shape, s.Layer.Name, s.Layer.Shape)
		}
	}
	return nil
}

func outOfOrder(place, before int) error {
	return fmt.Errorf("seis: the sample at place %d comes after that at place %d", place, before)
}

// startSample checks a place against the segment; if that is empty, it sets its range and memory.
func (c *segment) startSample(place int, a *accumulator) error {
	if place < 0 || place >= a.site.Layout.N {
		return fmt.Errorf("seis: a sample at place %d; the layout has %d places", place, a.site.Layout.N)
	}
	if c.samples > 0 && (place <= c.last || place < c.from) {
		return outOfOrder(place, c.last)
	}
	if c.samples == 0 {
		c.from, c.to = a.parts.segment(place)
		c.counts = make([]int, a.parts.count(c.from, c.to))
		c.rows = a.measure.takeRows(a.valuesOf(a.parts.longest()))
		c.sum = make([]float64, 2*a.maps.positions())
	}
	c.last = place
	return nil
}

func (a *accumulator) flush() error {
	err := a.add(a.segment)
	a.measure.giveRows(a.segment.rows)
	a.segment = segment{}
	return err
}

func (a *accumulator) valuesOf(samples int) int {
	return samples * a.maps.channels * 2 * a.maps.positions()
}

// add overwrites the segment's rows.
func (a *accumulator) add(c segment) error {
	if c.samples == 0 {
		return nil
	}
	if n := a.groups.len(); n > 0 {
		if err := a.groups.begin(groupOf(c.from, n, a.site.Layout)); err != nil {
			return err
		}
	}
	a.addProducts(c, nil)
	return nil
}

// addProducts adds a segment's products to the total, the null and a non-nil group.
func (a *accumulator) addProducts(c segment, group *linalg.Scatter[float32]) {
	if c.samples > 1 && slices.Contains(c.counts, 1) { // a sample that is alone in its part is in no pair
		for _, one := range a.split(c) {
			a.addParts(one, group)
		}
		return
	}
	a.addParts(c, group)
}

// addParts is addProducts for a segment of one sample, or of at least two samples of each part.
func (a *accumulator) addParts(c segment, group *linalg.Scatter[float32]) {
	memory, ok := a.measure.scratch.Get().(*scratch)
	if !ok {
		memory = new(scratch)
	}
	defer a.measure.scratch.Put(memory)
	// In this package, the type block is the observations of a segment, not samples of the layout.
	b := block{rows: c.rows[:a.valuesOf(c.samples)], d: a.maps.positions()}
	// tile is the number of variables that are multiplied at once; a single tile of x with x is
	// cached.
	if b.d <= tile && a.clean.shared() {
		b.clean, b.hash = a.clean, hashClean(b.rows, b.d)
	}
	b.Block = linalg.CentreSummed(b.rows, c.sum)
	totalUpdate := a.total.Begin(b.N(), b.Mean())
	var groupUpdate linalg.Update[float32]
	if group != nil {
		groupUpdate = group.Begin(b.N(), b.Mean())
	}
	b.addViews(totalUpdate, groupUpdate, memory)
	var pairs []*shuffledPairs
	if a.null != nil {
		pairs = a.shuffledPairs(c)
	}
	b.addPairs(totalUpdate, groupUpdate, a.null, pairs, memory)
	totalUpdate.End()
	groupUpdate.End()
}

// shuffledPairs draws a segment's pairs within parts, independent of the division among processes.
// One sample has none.
func (a *accumulator) shuffledPairs(c segment) (pairs []*shuffledPairs) {
	for i, samples := range c.counts {
		if samples > 1 {
			pairs = append(pairs, newShuffledPairs(a.site.Key, a.startOf(c, i), samples, a.maps.channels))
		}
	}
	return pairs
}

// startOf returns the first place of part i of a segment.
func (a *accumulator) startOf(c segment, i int) int {
	return a.parts.start(a.parts.index(c.from) + i)
}

func (a *accumulator) split(c segment) (out []segment) {
	rows := c.rows
	for i, samples := range c.counts {
		if samples == 0 {
			continue
		}
		n := a.valuesOf(samples)
		part := segment{from: a.startOf(c, i), samples: samples, counts: []int{samples}, rows: rows[:n], sum: make([]float64, len(c.sum))}
		linalg.SumRows(part.sum, part.rows)
		rows = rows[n:]
		out = append(out, part)
	}
	return out
}

// Merge adds other blocks. Their unfinished segment is continued here, or, if both have one, added
// now, since it gets no further samples.
func (a *accumulator) Merge(other measure.Accumulator) error {
	o, ok := other.(*accumulator)
	if !ok {
		return fmt.Errorf("seis: merging a state of %T", other)
	}
	if o.maps.channels != a.maps.channels || o.total.P != a.total.P || o.groups.len() != a.groups.len() || (o.null == nil) != (a.null == nil) || o.site.Layout != a.site.Layout {
		return fmt.Errorf("seis: merging states of different layers, layouts or settings")
	}
	if err := a.groups.merge(o.groups); err != nil {
		return err
	}
	if a.groups.len() == 0 {
		a.total.Merge(o.total)
	}
	if a.null != nil {
		a.null.Merge(o.null)
	}
	switch {
	case o.segment.samples == 0:
	case a.segment.samples == 0:
		a.segment = o.segment.clone()
	default:
		return a.add(o.segment.clone())
	}
	return nil
}

// eachGroup calls f for the first n groups; the scatter is valid during the call.
func (a *accumulator) eachGroup(n int, f func(s *linalg.Scatter[float32]) error) error {
	return a.groups.each(n, func(group int, s *linalg.Scatter[float32]) error {
		if a.pending != nil && a.pendingGroup == group {
			s.Merge(a.pending)
		}
		return f(s)
	})
}

func (c segment) clone() segment {
	c.rows, c.sum, c.counts = slices.Clone(c.rows), slices.Clone(c.sum), slices.Clone(c.counts)
	return c
}

// withPending returns an accumulator, maybe a copy, with an empty segment and the moments of all.
func (a *accumulator) withPending() (*accumulator, error) {
	if a.segment.samples == 0 && a.groups.len() == 0 {
		return a, nil
	}
	c := *a
	if a.groups.len() > 0 {
		var err error
		if c.total, err = a.groups.total(); err != nil || a.segment.samples == 0 {
			return &c, err
		}
	} else {
		c.total = a.total.Clone()
	}
	if a.null != nil {
		c.null = a.null.Clone()
	}
	if n := a.groups.len(); n > 0 {
		c.pending, c.pendingGroup = linalg.NewScatter[float32](a.total.P), groupOf(a.segment.from, n, a.site.Layout)
	}
	c.addProducts(a.segment.clone(), c.pending)
	c.segment = segment{}
	return &c, nil
}
