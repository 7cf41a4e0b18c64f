package similarity

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// An accumulator gathers what the statistics of a grid are made of, a block of samples at a time: of every layer its Gram matrix
// on the block, its moments, or its values, and of every pair what lies between the two.
type accumulator struct {
	family *family
	grid   measure.Grid
	units  []unit
	of     [2][]int // the unit of each layer of either side
	plans  []plan   // of the pairs

	n     int // samples that have been added
	block block
	mini  *miniGrid
	sides []*side // of the units whose moments are gathered, else nil
	pairs []*pair // of the pairs whose moments are gathered, else nil
	kept  kept

	scratch linalg.Scratch
}

// A block is samples that wait for the rest of their block.
type block struct {
	places []int
	rows   [][]float32 // of each unit
}

// kept is the values of the samples of the first places.
type kept struct {
	limit  []int // of each unit: places below are kept
	places []int // of the samples kept for the unit that keeps most
	rows   [][]float32
}

func newAccumulator(f *family, g measure.Grid) *accumulator {
	a := &accumulator{family: f, grid: g}
	a.units, a.of = unitsOf(g, f.settings)
	n := len(a.units)
	a.block.rows = make([][]float32, n)
	a.kept = kept{limit: make([]int, n), rows: make([][]float32, n)}
	a.sides, a.pairs = make([]*side, n), make([]*pair, len(g.Pairs))
	if len(f.settings.wanted(ofMinibatch)) > 0 {
		a.mini = newMiniGrid(n, len(g.Pairs), g.Layout.Groups)
	}
	grouped := make([]bool, n)
	for i := range g.Pairs {
		p := f.planOf(g, i)
		a.plans = append(a.plans, p)
		u, v := a.ends(i)
		a.kept.limit[u], a.kept.limit[v] = max(a.kept.limit[u], p.keep), max(a.kept.limit[v], p.keep)
		grouped[u], grouped[v] = grouped[u] || p.moments && p.groups, grouped[v] || p.moments && p.groups
	}
	for i, p := range a.plans {
		if p.moments {
			u, v := a.ends(i)
			groups, draws := 0, 0
			if p.groups {
				groups = g.Layout.Groups
			}
			if p.shuffles() {
				draws = 1
			}
			a.pairs[i] = newPair(a.side(u, grouped[u], p), a.side(v, grouped[v], p), groups, draws, p.debiased())
		}
	}
	return a
}

// ends are the units of a pair.
func (a *accumulator) ends(pair int) (u, v int) {
	p := a.grid.Pairs[pair]
	return a.of[0][p[0]], a.of[1][p[1]]
}

func (a *accumulator) side(u int, grouped bool, p plan) *side {
	if a.sides[u] == nil {
		groups := 0
		if grouped {
			groups = p.layout.Groups
		}
		a.sides[u] = newSide(a.units[u].p, groups, p.debiased())
	}
	return a.sides[u]
}

// Update adds the samples of a batch.
func (a *accumulator) Update(b *measure.PairBatch) error {
	if err := a.check(b); err != nil {
		return err
	}
	for i, place := range b.Place {
		if len(a.block.places) > 0 && place/a.grid.Layout.Block != a.block.places[0]/a.grid.Layout.Block {
			a.flush() // of a sample that could not be read
		}
		if n := len(a.block.places); n > 0 && place <= a.block.places[n-1] {
			return outOfOrder(place, a.block.places[n-1])
		}
		a.block.places = append(a.block.places, place)
		for u, unit := range a.units {
			a.block.rows[u] = unit.rows(a.block.rows[u], a.tensor(b, unit).Slice(i, i+1))
		}
		if last := place + 1; last == a.grid.Layout.N || last%a.grid.Layout.Block == 0 {
			a.flush()
		}
	}
	return nil
}

func (a *accumulator) tensor(b *measure.PairBatch, u unit) tensor.Tensor {
	if u.side == measure.SideB {
		return b.B[u.index]
	}
	return b.A[u.index]
}

// check holds a batch against the grid before any of it is taken.
func (a *accumulator) check(b *measure.PairBatch) error {
	if len(b.A) != len(a.grid.A) || len(b.B) != len(a.grid.B) {
		return fmt.Errorf("similarity: %d and %d layers for a grid of %d and %d", len(b.A), len(b.B), len(a.grid.A), len(a.grid.B))
	}
	for i, place := range b.Place {
		if place < 0 || place >= a.grid.Layout.N {
			return fmt.Errorf("similarity: a sample at place %d of %d", place, a.grid.Layout.N)
		}
		if i > 0 && place <= b.Place[i-1] {
			return outOfOrder(place, b.Place[i-1])
		}
	}
	for _, u := range a.units {
		z := a.tensor(b, u)
		if z.Rank() == 0 || z.Shape[0] != len(b.Place) || !slices.Equal(z.Shape[1:], u.layer.Shape) {
			return fmt.Errorf("similarity: the activations of %d samples have shape %v; layer %q has %v for each sample", len(b.Place), z.Shape, u.layer.Name, u.layer.Shape)
		}
		if at := z.Finite(); at >= 0 {
			return &measure.NonFiniteIn{Side: u.side, Layer: u.index, Index: b.Index[at/tensor.Size(u.layer.Shape)]}
		}
	}
	return nil
}

func outOfOrder(place, before int) error {
	return fmt.Errorf("similarity: the sample at place %d comes after that at place %d", place, before)
}

// flush adds the samples of the block to everything that is gathered.
func (a *accumulator) flush() {
	if len(a.block.places) == 0 {
		return
	}
	a.n += len(a.block.places)
	a.keep()
	grams := make([]batchGram, len(a.units))
	chunks := make([]chunk, len(a.units))
	wide := len(a.plans) > 0 && a.plans[0].wide()
	for u, unit := range a.units {
		rows := a.block.rows[u]
		if a.mini != nil && len(a.block.places) >= minBatch {
			grams[u] = newBatchGram(wideChunk(widened(rows), unit.p).wide, unit.p)
		}
		switch {
		case a.sides[u] == nil:
		case wide:
			chunks[u] = wideChunk(widened(rows), unit.p)
		default:
			chunks[u] = narrowChunk(rows, unit.p) // overwrites the rows, whose last use this is
		}
	}
	from := a.block.places[0]
	group := a.grid.Layout.Group(from)
	if a.mini != nil && len(a.block.places) >= minBatch {
		a.mini.add(group, grams, a.ends)
	}
	for u, s := range a.sides {
		if s != nil {
			s.add(chunks[u], group, &a.scratch)
		}
	}
	for i, m := range a.pairs {
		if m != nil {
			u, v := a.ends(i)
			m.add(chunks[u], chunks[v], group, a.generator(from), &a.scratch)
		}
	}
	a.block.places = a.block.places[:0]
	for u := range a.block.rows {
		a.block.rows[u] = a.block.rows[u][:0]
	}
}

func widened(rows []float32) []float64 {
	out := make([]float64, len(rows))
	for i, v := range rows {
		out[i] = float64(v)
	}
	return out
}

// keep keeps the values of the block's samples that lie below the units' limits.
func (a *accumulator) keep() {
	most := slices.Max(a.kept.limit)
	for i, place := range a.block.places {
		if place >= most {
			continue
		}
		a.kept.places = append(a.kept.places, place)
		for u, unit := range a.units {
			if place < a.kept.limit[u] {
				a.kept.rows[u] = append(a.kept.rows[u], a.block.rows[u][i*unit.p:(i+1)*unit.p]...)
			}
		}
	}
}

// generator draws the partners of a block for the null.
func (a *accumulator) generator(from int) *rand.Rand {
	k := a.grid.Key
	return seed.Rand(k.Seed, "similarity null", k.Data, k.Transform, k.Trial, from)
}

// Merge adds the state of an accumulator that has seen other blocks. A block that other has begun is carried on here, unless this one
// has begun another: then it will get no further samples, and is added as it is.
func (a *accumulator) Merge(other measure.GridAccumulator) error {
	o, ok := other.(*accumulator)
	if !ok {
		return fmt.Errorf("similarity: merging a state of %T", other)
	}
	if !slices.Equal(a.header(), o.header()) {
		return fmt.Errorf("similarity: merging states of different grids, layouts or settings")
	}
	a.n += o.n
	if a.mini != nil {
		a.mini.merge(o.mini)
	}
	for i, m := range a.pairs {
		if m != nil {
			m.merge(o.pairs[i])
		}
	}
	for u, s := range a.sides {
		if s != nil {
			s.merge(o.sides[u])
		}
	}
	a.kept.merge(o.kept, a.units)
	if len(o.block.places) == 0 {
		return nil
	}
	mine := a.block
	a.block = o.block.clone()
	if len(mine.places) > 0 {
		a.flush()
		a.block = mine
	}
	return nil
}

func (b block) clone() block {
	out := block{places: slices.Clone(b.places)}
	for _, rows := range b.rows {
		out.rows = append(out.rows, slices.Clone(rows))
	}
	return out
}

func (k *kept) merge(o kept, units []unit) {
	k.places = append(k.places, o.places...)
	for u := range units {
		k.rows[u] = append(k.rows[u], o.rows[u]...)
	}
}
