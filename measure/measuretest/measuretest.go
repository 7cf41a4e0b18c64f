// Package measuretest checks that a measure keeps the promises of measure.Accumulator: its scores do not depend on how
// the samples were cut into batches and parts, in which order the parts were merged, or whether the work was stopped
// and resumed; and a damaged state is an error, never a panic and never a score.
//
// A new measure is tested by one call:
//
//	measuretest.Run(t, measuretest.Case{Measure: m, Site: site, Clean: z, Moved: moved})
package measuretest

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// A Case is a measure with data to feed it. The sample at place p of the layout is row p of the tensors.
type Case struct {
	Measure   measure.Measure
	Site      measure.Site
	Clean     tensor.Tensor // Layout.N x ...
	Moved     tensor.Tensor // the same, or empty
	Label     []int         // nil: no labels
	Tolerance float64       // by which numbers may differ, relative to the larger of 1 and their size; 0: 1e-9
}

// Run checks the case. Give it a layout of several blocks, a last block that is not full, and few enough samples
// that a pass takes milliseconds: it makes some hundreds.
func Run(t *testing.T, c Case) {
	t.Helper()
	all := make([]int, c.Site.Layout.N)
	for p := range all {
		all[p] = p
	}
	t.Run("batch sizes", func(t *testing.T) {
		want := c.feed(t, all, len(all))
		for _, size := range []int{1, 7, 32, 256} {
			c.same(t, c.feed(t, all, size), want)
		}
	})
	t.Run("parts", func(t *testing.T) { rapid.Check(t, c.parts) })
	t.Run("resuming", func(t *testing.T) { rapid.Check(t, c.resuming) })
	t.Run("no samples", func(t *testing.T) {
		if _, err := c.empty(t).Scores(); !errors.Is(err, measure.ErrTooFew) {
			t.Errorf("the scores of nothing give %v, not ErrTooFew", err)
		}
	})
	t.Run("damaged states", func(t *testing.T) {
		state := c.marshal(t, c.feed(t, all[:len(all)-1], 7))
		if cost := c.Measure.Cost(c.Site); int64(len(state)) > cost+4096 {
			t.Errorf("a state takes %d bytes, and Cost bounds it by %d", len(state), cost)
		}
		c.truncated(t, state)
		rapid.Check(t, func(t *rapid.T) { c.altered(t, state) })
	})
}

// parts feeds some of the samples (the others could not be read) to several accumulators, a block to one of them, in batches of
// random sizes, merges them in random order, and compares with one accumulator that has seen all in one batch.
func (c Case) parts(t *rapid.T) {
	seen := c.readable(t)
	owner := rapid.SliceOfN(rapid.IntRange(0, 3), c.Site.Layout.Blocks(), -1).Draw(t, "owner of each block")
	places := make([][]int, 4)
	for _, p := range seen {
		i := owner[p/c.Site.Layout.Block]
		places[i] = append(places[i], p)
	}
	order := rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "order of merging")
	whole := c.empty(t)
	for _, i := range order {
		part := c.feed(t, places[i], rapid.IntRange(1, 40).Draw(t, "batch size"))
		if err := whole.Merge(part); err != nil {
			t.Fatalf("Merge: %v", err)
		}
	}
	c.same(t, whole, c.feed(t, seen, len(seen)))
}

// resuming stops after some samples, in the middle of a block as well, carries on from the serialised state, and
// compares with an undisturbed pass. Looking at the scores on the way must not change them.
func (c Case) resuming(t *rapid.T) {
	seen := c.readable(t)
	cut := rapid.IntRange(0, len(seen)).Draw(t, "samples before the stop")
	size := rapid.IntRange(1, 40).Draw(t, "batch size")
	stopped := c.feed(t, seen[:cut], size)
	if _, err := stopped.Scores(); err != nil && !errors.Is(err, measure.ErrTooFew) {
		t.Fatalf("Scores: %v", err)
	}
	resumed := c.empty(t)
	if err := resumed.UnmarshalBinary(c.marshal(t, stopped)); err != nil {
		t.Fatalf("UnmarshalBinary: %v", err)
	}
	c.feedTo(t, stopped, seen[cut:], size)
	c.feedTo(t, resumed, seen[cut:], size)
	want := c.feed(t, seen, len(seen))
	c.same(t, stopped, want)
	c.same(t, resumed, want)
}

// readable draws the places whose samples can be read: most of them.
func (c Case) readable(t *rapid.T) []int {
	missing := rapid.SliceOfN(rapid.IntRange(0, c.Site.Layout.N-1), 0, c.Site.Layout.N/8).Draw(t, "unreadable")
	var seen []int
	for p := range c.Site.Layout.N {
		if !slices.Contains(missing, p) {
			seen = append(seen, p)
		}
	}
	return seen
}

// A fataler is a *testing.T or a *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func (c Case) empty(t fataler) measure.Accumulator {
	t.Helper()
	a, err := c.Measure.New(c.Site)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return a
}

func (c Case) feed(t fataler, places []int, size int) measure.Accumulator {
	t.Helper()
	a := c.empty(t)
	c.feedTo(t, a, places, size)
	return a
}

func (c Case) feedTo(t fataler, a measure.Accumulator, places []int, size int) {
	t.Helper()
	for batch := range slices.Chunk(places, max(1, size)) {
		b := c.batch(batch)
		if err := a.Update(b); err != nil {
			t.Fatalf("Update: %v", err)
		}
		spoil(b)
	}
}

// batch gathers the rows of some places in tensors of its own.
func (c Case) batch(places []int) *measure.Batch {
	b := &measure.Batch{Place: slices.Clone(places), Clean: rows(c.Clean, places), Moved: rows(c.Moved, places)}
	for _, p := range places {
		// Any one-to-one map of places to indices will do.
		b.Index = append(b.Index, 2*(c.Site.Layout.N-p))
		label := dataset.NoLabel
		if c.Label != nil {
			label = c.Label[p]
		}
		b.Label = append(b.Label, label)
	}
	return b
}

func rows(t tensor.Tensor, places []int) tensor.Tensor {
	if t.Len() == 0 {
		return tensor.Tensor{}
	}
	shape := slices.Clone(t.Shape)
	shape[0] = len(places)
	out := tensor.New(shape...)
	for i, p := range places {
		copy(out.At(i).Data, t.At(p).Data)
	}
	return out
}

// spoil overwrites a batch, whose memory is its owner's again once Update has returned.
func spoil(b *measure.Batch) {
	for _, data := range [][]float32{b.Clean.Data, b.Moved.Data} {
		for i := range data {
			data[i] = 1e30
		}
	}
	for _, ints := range [][]int{b.Place, b.Index, b.Label} {
		for i := range ints {
			ints[i] = -12345
		}
	}
}

func (c Case) marshal(t fataler, a measure.Accumulator) []byte {
	t.Helper()
	data, err := a.MarshalBinary()
	if err != nil {
		t.Fatalf("MarshalBinary: %v", err)
	}
	return data
}
