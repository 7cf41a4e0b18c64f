package similarity

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
)

// A representation is a layer's activations with what follows from them alone, on p variables; an
// estimate has value, null, replicates and warnings.

func (a *accumulator) Scores() ([]measure.PairScore, error) {
	if len(a.pending.places) > 0 {
		flushed, err := a.withPending()
		if err != nil {
			return nil, err
		}
		a = flushed
	}
	if a.n == 0 {
		return nil, measure.ErrTooFew
	}
	all, part := a.rowsBelow(a.grid.Layout.N), a.rowsBelow(a.comparison.settings.Samples)
	gathered := make([]*representation, len(a.layers))
	var out []measure.PairScore
	selected := a.comparison.settings.selected()
	for i, layers := range a.grid.Pairs {
		found := estimates{}
		used := map[string]int{}
		if err := a.estimate(i, all, part, gathered, found, used); err != nil {
			return nil, fmt.Errorf("similarity of %s and %s: %w", a.grid.A[layers[0]].Name, a.grid.B[layers[1]].Name, err)
		}
		if a.exceedsBudget() {
			clear(gathered)
		}
		for _, k := range selected {
			if e, ok := found[k.name]; ok {
				for _, s := range e.scores(k.name, used[k.name], a.comparison.settings) {
					out = append(out, measure.PairScore{A: layers[0], B: layers[1], Score: s})
				}
			}
		}
	}
	return out, nil
}

// withPending returns a copy to which the samples of the incomplete block have been added.
func (a *accumulator) withPending() (*accumulator, error) {
	data, err := a.MarshalBinary()
	if err != nil {
		return nil, err
	}
	c := newAccumulator(a.comparison, a.grid)
	if err := c.UnmarshalBinary(data); err != nil {
		return nil, err
	}
	c.flush()
	return c, nil
}

// estimate computes pair i into out, and samples taken into used. all has all stored samples, part
// the first Settings.Samples for pairwiseInput. momentInput takes moments or, without them, all;
// minibatchInput minibatch Gram matrices. fromMoments sets gathered, by layer.
func (a *accumulator) estimate(i int, all, part *groupedRows, gathered []*representation, out estimates, used map[string]int) error {
	plan, settings := a.plans[i], a.comparison.settings // plan: what is gathered for the pair
	u, v := a.pairLayers(i)                             // indices in a.layers
	for _, in := range []input{minibatchInput, pairwiseInput, momentInput} {
		selected := settings.selected(in)
		if len(selected) == 0 {
			continue
		}
		n, err := 0, error(nil)
		switch {
		case plan.refused[in] != "": // why these statistics cannot be computed
			for _, k := range selected {
				out[k.name] = undefinedEstimate(plan.refused[in])
			}
		case in == minibatchInput:
			out[MinibatchCKA] = a.minibatches.estimate(i, u, v)
			for _, g := range a.minibatches.n {
				n += g
			}
		case in == pairwiseInput:
			n = len(part.order)
			err = a.fromValues(part, u, v, selected, in, out)
		case plan.moments:
			n = a.pairs[i].xy.N
			err = a.fromMoments(i, gathered, withEnoughSamples(selected, n, out), out)
		default:
			n = len(all.order)
			err = a.fromValues(all, u, v, selected, in, out)
		}
		if err != nil {
			return err
		}
		for _, k := range selected {
			used[k.name] = n
		}
	}
	return nil
}

// withEnoughSamples returns the statistics for which n suffice; others become undefined.
func withEnoughSamples(selected []statistic, n int, out estimates) []statistic {
	return slices.DeleteFunc(slices.Clone(selected), func(k statistic) bool {
		if n < k.minSamples {
			out[k.name] = undefinedEstimate(tooFewFor(k.name, k.minSamples))
		}
		return n < k.minSamples
	})
}

// fromMoments uses summed moments of pair i; gathered keeps what one layer alone gives.
func (a *accumulator) fromMoments(i int, gathered []*representation, selected []statistic, out estimates) error {
	r := a.calculator(nil) // nil: the moments are already summed for each group of the jackknife
	u, v := a.pairLayers(i)
	for _, w := range []int{u, v} {
		if gathered[w] == nil {
			gathered[w] = r.newRepresentation(nil) // nil: without the values of samples
			gathered[w].moments = a.layerMoments[w]
		}
	}
	return r.momentStatistics(context.Background(), a.pairs[i], gathered[u], gathered[v], selected, out)
}

// exceedsBudget: decompositions of all layers exceed the budget, so those of a pair must be
// released.
func (a *accumulator) exceedsBudget() bool {
	var held int64
	for u, layer := range a.layers {
		if a.layerMoments[u] != nil { // five p x p matrices of float64, for p variables
			held += 8 * 5 * int64(layer.p) * int64(layer.p)
		}
	}
	return a.grid.Budget > 0 && held > a.grid.Budget
}

// calculator has the measure's settings; cuts begin the jackknife's groups and end with n; nil: no
// interval.
func (a *accumulator) calculator(cuts []int) *calculator {
	k, p := a.grid.Key, a.plans[0]
	seed := seed.Rand(k.Seed, "similarity", k.Data, k.Transform, k.Trial).Uint64()
	return &calculator{settings: a.comparison.settings, cuts: cuts, float64: p.inFloat64(), debiased: p.debiased(), null: a.comparison.settings.Null, seed: seed}
}

// groupedRows are stored samples in the order of groups.
type groupedRows struct {
	calculator      *calculator       // with the groups of these samples
	order           []int             // places (positions in the order of the layout) of the samples
	rows            [][]int           // for each layer, the rows of the samples among its stored values
	representations []*representation // for each layer; nil until it is needed
	lowMemory       bool              // the representations of all layers do not fit into memory together
}

func (a *accumulator) rowsBelow(limit int) *groupedRows {
	l := a.grid.Layout
	out := &groupedRows{representations: make([]*representation, len(a.layers))}
	for _, place := range a.stored.places {
		if place < limit {
			out.order = append(out.order, place)
		}
	}
	slices.SortFunc(out.order, func(p, q int) int { return cmp.Or(l.Group(p)-l.Group(q), p-q) })
	var cuts []int
	for i, p := range out.order {
		if i == 0 || l.Group(p) != l.Group(out.order[i-1]) {
			cuts = append(cuts, i)
		}
	}
	if len(cuts) >= fewestGroups && a.comparison.settings.Interval {
		cuts = append(cuts, len(out.order))
	} else {
		cuts = nil
	}
	out.calculator = a.calculator(cuts)
	n, held := int64(len(out.order)), int64(0)
	for u, layer := range a.layers {
		row := map[int]int{}
		for _, place := range a.stored.places {
			if place < a.stored.limit[u] {
				row[place] = len(row)
			}
		}
		var rows []int
		for _, place := range out.order {
			rows = append(rows, row[place])
		}
		out.rows = append(out.rows, rows)
		width := min(int64(layer.p), n)
		// Five matrices of float64, and for each group half a symmetric matrix of float32.
		held += 8*5*width*width + 2*int64(len(cuts))*width*width
	}
	out.lowMemory = a.grid.Budget > 0 && held > a.grid.Budget
	return out
}

// fromValues computes statistics of input in from stored values of u and v.
func (a *accumulator) fromValues(from *groupedRows, u, v int, selected []statistic, in input, out estimates) error {
	ctx, n := context.Background(), len(from.order)
	if selected = withEnoughSamples(selected, n, out); len(selected) == 0 {
		return nil
	}
	x, err := a.representation(ctx, from, u)
	if err != nil {
		return err
	}
	y, err := a.representation(ctx, from, v)
	if err != nil {
		return err
	}
	if in == pairwiseInput {
		err = from.calculator.fromPairs(ctx, x, y, selected, out)
	} else {
		err = from.calculator.fromMoments(ctx, x, y, selected, out)
	}
	if n < a.grid.Layout.N && in == pairwiseInput && n == a.comparison.settings.Samples {
		for _, k := range selected {
			e := out[k.name]
			e.warnings = append(e.warnings, fmt.Sprintf("computed on %d of %d samples, the bound for statistics of n x n values", n, a.grid.Layout.N))
			out[k.name] = e
		}
	}
	if from.lowMemory {
		clear(from.representations)
	}
	return err
}

func (a *accumulator) representation(ctx context.Context, from *groupedRows, u int) (*representation, error) {
	if from.representations[u] == nil {
		p := a.layers[u].p
		source, err := Of(a.stored.rows[u], len(a.stored.rows[u])/p, p)
		if err != nil {
			return nil, err
		}
		s, err := newCentredSample(ctx, a.layers[u].Name, source, from.rows[u])
		if err != nil {
			return nil, err
		}
		from.representations[u] = from.calculator.newRepresentation(s)
	}
	return from.representations[u], nil
}
