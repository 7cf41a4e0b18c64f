package similarity

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// An accumulator gathers what the statistics of a grid are computed from: minibatch HSIC, moments
// or values of layers, and moments of pairs.
type accumulator struct {
	comparison *comparison
	grid       measure.Grid
	layers     []layer  // the distinct layers of the grid, each of p variables for a sample
	index      [2][]int // for each side and layer of the grid, its index in layers
	plans      []plan   // for each pair: what is gathered for it
	block      int      // samples that are added together

	n            int // samples that have been added
	pending      pendingBlock
	minibatches  *minibatchTotals // nil unless minibatch CKA is selected
	layerMoments []*singleMoments // for each layer; nil where its moments are not gathered
	pairs        []*pairMoments   // for each pair; nil where its moments are not gathered
	narrow       [2]narrowLayers  // for each side, the layers of few variables, which are multiplied together
	stored       storedRows       // values of samples

	scratch linalg.Scratch
}

type pendingBlock struct {
	places []int       // positions of the samples in the order of the layout
	rows   [][]float32 // for each layer
}

type storedRows struct {
	limit  []int       // for each layer: samples at places below it are stored
	places []int       // of all samples that are stored for at least one layer
	rows   [][]float32 // for each layer
}

func newAccumulator(f *comparison, g measure.Grid) *accumulator {
	a := &accumulator{comparison: f, grid: g}
	a.layers, a.index = layersOf(g, f.settings)
	n := len(a.layers)
	a.pending.rows = make([][]float32, n)
	a.stored = storedRows{limit: make([]int, n), rows: make([][]float32, n)}
	a.layerMoments, a.pairs = make([]*singleMoments, n), make([]*pairMoments, len(g.Pairs))
	if len(f.settings.selected(minibatchInput)) > 0 {
		a.minibatches = newMinibatchTotals(n, len(g.Pairs), g.Layout.Groups)
	}
	groups := make([]int, n) // for each layer: number of groups whose moments are gathered
	for i := range g.Pairs {
		p := f.planOf(g, i)
		a.plans = append(a.plans, p)
		u, v := a.pairLayers(i)
		for _, w := range []int{u, v} {
			a.stored.limit[w] = max(a.stored.limit[w], p.stored)
			groups[w] = max(groups[w], p.momentGroups())
		}
	}
	for i, p := range a.plans {
		if !p.moments {
			continue
		}
		u, v := a.pairLayers(i)
		for _, w := range []int{u, v} {
			if a.layerMoments[w] == nil {
				a.layerMoments[w] = newSingleMoments(a.layers[w].p, groups[w], p.debiased())
			}
		}
		a.pairs[i] = newPairMoments(a.layerMoments[u], a.layerMoments[v], p.momentGroups(), p.draws(), p.debiased())
	}
	a.block = f.blockOf(g)
	a.narrow = a.narrowLayers()
	return a
}

// blockOf returns how many samples are added together: a block, or several if minibatches, groups
// and shuffles allow. More is faster, up to 1024 samples or 4 million values.
func (f *comparison) blockOf(g measure.Grid) int {
	block := g.Layout.Block
	if len(f.settings.selected(minibatchInput)) > 0 {
		return block
	}
	for i := range g.Pairs {
		if p := f.planOf(g, i); p.groups || p.drawsNull() {
			return block
		}
	}
	layers, _ := layersOf(g, f.settings)
	values := 0 // of a sample
	for _, layer := range layers {
		values += layer.p
	}
	return block * max(1, min(1024/block, 1<<22/(block*values)))
}

// pairLayers returns a pair's layers as indices u, v into a.layers, as in all functions here.
func (a *accumulator) pairLayers(pair int) (u, v int) {
	p := a.grid.Pairs[pair]
	return a.index[0][p[0]], a.index[1][p[1]]
}

// Update refuses places that do not increase and other shapes; NaN or infinity is a
// *measure.NonFiniteIn.
func (a *accumulator) Update(b *measure.PairBatch) error {
	if err := a.check(b); err != nil {
		return err
	}
	for i := 0; i < len(b.Place); {
		place := b.Place[i]
		if n := len(a.pending.places); n > 0 && place/a.block != a.pending.places[0]/a.block {
			a.flush() // a sample of the block could not be read
		} else if n > 0 && place <= a.pending.places[n-1] {
			return outOfOrder(place, a.pending.places[n-1])
		}
		to := i + 1 // the samples from i on that belong to the same block
		for to < len(b.Place) && b.Place[to]/a.block == place/a.block {
			to++
		}
		a.pending.places = append(a.pending.places, b.Place[i:to]...)
		for u, layer := range a.layers {
			if a.pending.rows[u] == nil {
				a.pending.rows[u] = make([]float32, 0, min(a.block, a.grid.Layout.N)*layer.p)
			}
			a.pending.rows[u] = layer.rows(a.pending.rows[u], a.tensor(b, layer).Slice(i, to))
		}
		if last := b.Place[to-1] + 1; last == a.grid.Layout.N || last%a.block == 0 {
			a.flush()
		}
		i = to
	}
	return nil
}

func (a *accumulator) tensor(b *measure.PairBatch, l layer) tensor.Tensor {
	if l.side == measure.SideB {
		return b.B[l.index]
	}
	return b.A[l.index]
}

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
	for _, l := range a.layers {
		z := a.tensor(b, l)
		if !l.accepts(z, len(b.Place)) {
			return fmt.Errorf("similarity: the activations of %d samples have shape %v; layer %q has %v for each sample", len(b.Place), z.Shape, l.Name, l.Shape)
		}
		if at := z.FirstNonFinite(); at >= 0 {
			return &measure.NonFiniteIn{Side: l.side, Layer: l.index, Index: b.Index[at/tensor.Size(z.Shape[1:])]}
		}
	}
	return nil
}

func outOfOrder(place, before int) error {
	return fmt.Errorf("similarity: the sample at place %d comes after that at place %d", place, before)
}

func (a *accumulator) flush() {
	if len(a.pending.places) == 0 {
		return
	}
	a.n += len(a.pending.places)
	a.storeRows()
	grams := make([]batchGram, len(a.layers)) // Gram matrices of the block as a minibatch
	chunks := make([]chunk, len(a.layers))    // centred values of the block
	inFloat64 := len(a.plans) > 0 && a.plans[0].inFloat64()
	for u, layer := range a.layers {
		rows := a.pending.rows[u]
		if a.minibatches != nil && len(a.pending.places) >= minBatch {
			grams[u] = newBatchGram(tensor.Float64s(rows), layer.p)
		}
		switch {
		case a.layerMoments[u] == nil:
		case inFloat64:
			chunks[u] = newChunk64(tensor.Float64s(rows), layer.p)
		default:
			chunks[u] = newChunk32(rows, layer.p) // overwrites the rows, which are not used again
		}
	}
	from := a.pending.places[0]
	group := a.grid.Layout.Group(from)
	if a.minibatches != nil && len(a.pending.places) >= minBatch {
		a.minibatches.add(group, grams, a.pairLayers)
	}
	for u, s := range a.layerMoments {
		if s != nil {
			s.add(chunks[u], group, &a.scratch)
		}
	}
	a.addPairs(chunks, group, from)
	a.pending.places = a.pending.places[:0]
	for u := range a.pending.rows {
		a.pending.rows[u] = a.pending.rows[u][:0]
	}
}

func (a *accumulator) storeRows() {
	most := slices.Max(a.stored.limit)
	for i, place := range a.pending.places {
		if place >= most {
			continue
		}
		a.stored.places = append(a.stored.places, place)
		for u, layer := range a.layers {
			if place < a.stored.limit[u] {
				if a.stored.rows[u] == nil {
					a.stored.rows[u] = make([]float32, 0, min(a.stored.limit[u], a.grid.Layout.N)*layer.p)
				}
				a.stored.rows[u] = append(a.stored.rows[u], a.pending.rows[u][i*layer.p:(i+1)*layer.p]...)
			}
		}
	}
}

// Merge adds other blocks. Its pending block continues here; if both have one, other's gets no
// further samples and is added.
func (a *accumulator) Merge(other measure.GridAccumulator) error {
	o, ok := other.(*accumulator)
	if !ok {
		return fmt.Errorf("similarity: merging a state of %T", other)
	}
	if !slices.Equal(a.header(), o.header()) {
		return fmt.Errorf("similarity: merging states of different grids, layouts or settings")
	}
	a.n += o.n
	if a.minibatches != nil {
		a.minibatches.merge(o.minibatches)
	}
	for i, m := range a.pairs {
		if m != nil {
			m.merge(o.pairs[i])
		}
	}
	for u, s := range a.layerMoments {
		if s != nil {
			s.merge(o.layerMoments[u])
		}
	}
	a.stored.merge(o.stored)
	if len(o.pending.places) == 0 {
		return nil
	}
	own := a.pending
	a.pending = o.pending.clone()
	if len(own.places) > 0 {
		a.flush()
		a.pending = own
	}
	return nil
}

func (b pendingBlock) clone() pendingBlock {
	out := pendingBlock{places: slices.Clone(b.places)}
	for _, rows := range b.rows {
		out.rows = append(out.rows, slices.Clone(rows))
	}
	return out
}

func (k *storedRows) merge(o storedRows) {
	k.places = append(k.places, o.places...)
	for u, rows := range o.rows {
		k.rows[u] = append(k.rows[u], rows...)
	}
}
