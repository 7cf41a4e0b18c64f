// Package measuretest checks that the accumulators of a measure (its running sums, updated batch by
// batch) satisfy the contract of measure.Accumulator or measure.GridAccumulator. A grid is a list
// of pairs of layers that one accumulator compares (measure.Grid).
//
// Scores must not depend on how the samples are divided into batches and parts, on the order in
// which parts are merged, or on whether the work was stopped and resumed from a state, a serialised
// accumulator. A damaged state must be an error, never a panic or a score. The scores of a pair of
// layers must not depend on the other pairs of the grid.
//
// A new measure is tested by one call:
//
//	measuretest.Run(t, measuretest.Case{Measure: m, Site: site, Clean: z, Transformed: transformed})
//	measuretest.RunGrid(t, measuretest.GridCase{Comparison: c, Grid: grid, A: a, B: b})
//
// Clean and Transformed are the activations of the site on the inputs x and T(x), A and B those of
// the two sides of the grid, one sample a row.
package measuretest

import (
	"encoding"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/measure"
)

// A contract checks accumulators of one measure. The sample at place p is row p of the data.
type contract struct {
	layout    measure.Layout
	cost      int64                   // bound of the measure on the memory of an accumulator, in bytes
	tolerance float64                 // largest relative difference of two scores; see Case
	exact     bool                    // values must be equal, whatever tolerance is
	open      func() (subject, error) // returns an empty accumulator
}

type subject interface {
	// update adds the samples at some places, from tensors that it overwrites afterwards.
	update(places []int) error
	merge(other subject) error
	scores() ([]measure.PairScore, error)
	samples() []measure.SampleScore
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

func (c contract) check(t *testing.T) {
	t.Helper()
	all := make([]int, c.layout.N)
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
		if _, err := c.empty(t).scores(); !errors.Is(err, measure.ErrTooFew) {
			t.Errorf("Scores without samples returns %v, not ErrTooFew", err)
		}
	})
	t.Run("damaged states", func(t *testing.T) {
		state := c.marshal(t, c.feed(t, all[:len(all)-1], 7))
		const header = 4096 // allowance for lengths and settings in a state
		if int64(len(state)) > c.cost+header {
			t.Errorf("a state takes %d bytes, and Cost bounds it by %d", len(state), c.cost)
		}
		c.refusesTruncated(t, state)
		rapid.Check(t, func(t *rapid.T) { c.survivesAltered(t, state) })
	})
}

// parts compares one accumulator with several, merged in random order. Each block goes to one of
// these, in batches of random sizes. Some samples are left out, as if they could not be read.
func (c contract) parts(t *rapid.T) {
	seen := c.readable(t)
	owner := rapid.SliceOfN(rapid.IntRange(0, 3), c.layout.Blocks(), -1).Draw(t, "owner of each block")
	places := make([][]int, 4)
	for _, p := range seen {
		i := owner[p/c.layout.Block]
		places[i] = append(places[i], p)
	}
	order := rapid.Permutation([]int{0, 1, 2, 3}).Draw(t, "order of merging")
	whole := c.empty(t)
	for _, i := range order {
		part := c.feed(t, places[i], rapid.IntRange(1, 40).Draw(t, "batch size"))
		if err := whole.merge(part); err != nil {
			t.Fatalf("Merge: %v", err)
		}
	}
	c.same(t, whole, c.feed(t, seen, len(seen)))
}

// resuming continues from a state after some samples, perhaps within a block, and compares the
// scores. Scores in between must not change it. With the same batches scores must be exactly equal:
// the times at which states are saved vary.
func (c contract) resuming(t *rapid.T) {
	seen := c.readable(t)
	cut := rapid.IntRange(0, len(seen)).Draw(t, "samples before the stop")
	size := rapid.IntRange(1, 40).Draw(t, "batch size")
	stopped := c.feed(t, seen[:cut], size)
	if _, err := stopped.scores(); err != nil && !errors.Is(err, measure.ErrTooFew) {
		t.Fatalf("Scores: %v", err)
	}
	resumed := c.empty(t)
	if err := resumed.UnmarshalBinary(c.marshal(t, stopped)); err != nil {
		t.Fatalf("UnmarshalBinary: %v", err)
	}
	c.feedTo(t, stopped, seen[cut:], size)
	c.feedTo(t, resumed, seen[cut:], size)
	exact := c
	exact.exact = true
	same := c.feed(t, seen[:cut], size)
	c.feedTo(t, same, seen[cut:], size)
	exact.same(t, stopped, same)
	exact.same(t, resumed, same)
	c.same(t, same, c.feed(t, seen, len(seen)))
}

// readable returns the places of the samples that can be read: all but a few random ones.
func (c contract) readable(t *rapid.T) []int {
	missing := rapid.SliceOfN(rapid.IntRange(0, c.layout.N-1), 0, c.layout.N/8).Draw(t, "unreadable")
	var seen []int
	for p := range c.layout.N {
		if !slices.Contains(missing, p) {
			seen = append(seen, p)
		}
	}
	return seen
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func (c contract) empty(t fataler) subject {
	t.Helper()
	a, err := c.open()
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return a
}

func (c contract) feed(t fataler, places []int, size int) subject {
	t.Helper()
	a := c.empty(t)
	c.feedTo(t, a, places, size)
	return a
}

func (c contract) feedTo(t fataler, a subject, places []int, size int) {
	t.Helper()
	for batch := range slices.Chunk(places, max(1, size)) {
		if err := a.update(batch); err != nil {
			t.Fatalf("Update: %v", err)
		}
	}
}

func (c contract) marshal(t fataler, a subject) []byte {
	t.Helper()
	data, err := a.MarshalBinary()
	if err != nil {
		t.Fatalf("MarshalBinary: %v", err)
	}
	return data
}
