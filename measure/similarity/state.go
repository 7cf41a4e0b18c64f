package similarity

import (
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/internal/state"
)

// header returns numbers that differ between grids, layouts and settings.
func (a *accumulator) header() []int {
	l := a.grid.Layout
	out := []int{l.N, a.block, l.Groups, len(a.layers), len(a.plans)}
	flag := func(b bool) {
		if b {
			out = append(out, 1)
		} else {
			out = append(out, 0)
		}
	}
	flag(a.minibatches != nil)
	for u, layer := range a.layers {
		out = append(out, layer.p, a.stored.limit[u])
		flag(a.layerMoments[u] != nil && len(a.layerMoments[u].groups) > 0)
	}
	for i, p := range a.plans {
		u, v := a.pairLayers(i)
		out = append(out, u, v)
		flag(a.pairs[i] != nil) // second moments are gathered
		flag(p.groups)          // also those of each jackknife group
		flag(p.debiased())      // fourth moments for debiased CKA
		flag(p.drawsNull())     // moments of shuffled pairs
		flag(p.inFloat64())
	}
	return out
}

func (a *accumulator) MarshalBinary() ([]byte, error) {
	return state.Marshal("similarity", a.comparison.Version(), a.Code)
}

// UnmarshalBinary leaves an accumulator that must not be used after an error.
func (a *accumulator) UnmarshalBinary(data []byte) error {
	if err := state.Unmarshal(data, "similarity", a.comparison.Version(), a.Code); err != nil {
		return fmt.Errorf("similarity: %w", err)
	}
	return nil
}

func (a *accumulator) Code(c *state.Codec) {
	header := a.header()
	c.Values(&header)
	c.Check(slices.Equal(header, a.header()), "the state is of another grid, layout or settings")
	c.Len(&a.n, math.MaxInt)
	c.Values(&a.pending.places)
	for i, place := range a.pending.places {
		first, before := a.pending.places[0], a.pending.places[max(i-1, 0)]
		c.Check(place >= 0 && place < a.grid.Layout.N && place/a.block == first/a.block &&
			(i == 0 || place > before),
			"the state has a block of the places %v, which do not fit the layout", a.pending.places)
	}
	for u := range a.layers {
		a.codeRows(c, &a.pending.rows[u], u, len(a.pending.places))
	}
	c.Values(&a.stored.places)
	seen := map[int]bool{}
	for _, place := range a.stored.places {
		c.Check(place >= 0 && place < slices.Max(a.stored.limit) && !seen[place],
			"the state has values of a sample at place %d, which does not fit the layout", place)
		seen[place] = true
	}
	for u := range a.layers {
		a.codeRows(c, &a.stored.rows[u], u, a.stored.count(u))
	}
	if a.minibatches != nil {
		c.Values(a.minibatches.n)
		c.Check(slices.Min(a.minibatches.n) >= 0, "the state has minibatches of %d samples",
			a.minibatches.n)
		for _, values := range slices.Concat(a.minibatches.self, a.minibatches.across) {
			c.Values(values)
		}
	}
	codeAll(c, slices.DeleteFunc(slices.Clone(a.layerMoments),
		func(s *singleMoments) bool { return s == nil }))
	codeAll(c, slices.DeleteFunc(slices.Clone(a.pairs),
		func(m *pairMoments) bool { return m == nil }))
}

func (a *accumulator) codeRows(c *state.Codec, rows *[]float32, u, n int) {
	c.Values(rows)
	c.Check(len(*rows) == n*a.layers[u].p, "the state has %d values of %d samples", len(*rows), n)
}

// count returns the number of stored samples of layer u: those at places below limit[u].
func (k *storedRows) count(u int) int {
	n := 0
	for _, place := range k.places {
		if place < k.limit[u] {
			n++
		}
	}
	return n
}

func codeAll[T state.Coder](c *state.Codec, parts []T) {
	for _, p := range parts {
		p.Code(c)
	}
}
