package similarity

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
)

// Scores computes the statistics of every pair.
func (a *accumulator) Scores() ([]measure.PairScore, error) {
	if len(a.block.places) > 0 {
		settled, err := a.withPending()
		if err != nil {
			return nil, err
		}
		a = settled
	}
	if a.n == 0 {
		return nil, measure.ErrTooFew
	}
	all, part := a.valuesBelow(a.grid.Layout.N), a.valuesBelow(a.family.settings.Samples)
	var out []measure.PairScore
	for i, ends := range a.grid.Pairs {
		found := estimates{}
		used := map[string]int{}
		if err := a.estimate(i, all, part, found, used); err != nil {
			return nil, fmt.Errorf("similarity of %s and %s: %w", a.grid.A[ends[0]].Name, a.grid.B[ends[1]].Name, err)
		}
		for _, k := range kinds() {
			if e, ok := found[k.name]; ok {
				out = append(out, measure.PairScore{A: ends[0], B: ends[1], Score: e.score(k, used[k.name])})
			}
		}
	}
	return out, nil
}

// withPending is a copy to which the pending block has been added.
func (a *accumulator) withPending() (*accumulator, error) {
	data, err := a.MarshalBinary()
	if err != nil {
		return nil, err
	}
	c := newAccumulator(a.family, a.grid)
	if err := c.UnmarshalBinary(data); err != nil {
		return nil, err
	}
	c.flush()
	return c, nil
}

// estimate computes what is wanted of a pair, and of how many samples.
func (a *accumulator) estimate(i int, all, part *values, out estimates, used map[string]int) error {
	plan, settings := a.plans[i], a.family.settings
	u, v := a.ends(i)
	for _, f := range []form{ofMinibatch, ofPairs, ofMoments} {
		wanted := settings.wanted(f)
		if len(wanted) == 0 {
			continue
		}
		n, err := 0, error(nil)
		switch {
		case plan.refused[f] != "":
			for _, k := range wanted {
				out[k.name] = undefined(plan.refused[f])
			}
		case f == ofMinibatch:
			out[MinibatchCKA] = a.mini.estimate(i, u, v)
			for _, g := range a.mini.n {
				n += g
			}
		case f == ofPairs:
			n = len(part.order)
			err = a.fromValues(part, u, v, wanted, f, out)
		case plan.moments:
			n = a.pairs[i].xy.N
			err = a.fromMoments(i, enough(wanted, n, out), out)
		default:
			n = len(all.order)
			err = a.fromValues(all, u, v, wanted, f, out)
		}
		if err != nil {
			return err
		}
		for _, k := range wanted {
			used[k.name] = n
		}
	}
	return nil
}

// enough drops the statistics for which there are too few samples, and says so.
func enough(wanted []kind, n int, out estimates) []kind {
	var kept []kind
	for _, k := range wanted {
		if n < k.least {
			out[k.name] = undefined(tooFewFor(k.name, k.least))
		} else {
			kept = append(kept, k)
		}
	}
	return kept
}

func (a *accumulator) fromMoments(i int, wanted []kind, out estimates) error {
	ctx, m := context.Background(), a.pairs[i]
	m.ckas(wanted, out)
	var canonical []kind
	for _, k := range wanted {
		if k.wide {
			canonical = append(canonical, k)
		}
	}
	r := a.run(nil)
	return r.canonicals(ctx, m, r.newRepresentation(nil), r.newRepresentation(nil), canonical, out)
}

// run fits a run to what the study wants.
func (a *accumulator) run(cuts []int) *run {
	k, p := a.grid.Key, a.plans[0]
	seed := seed.Rand(k.Seed, "similarity", k.Data, k.Transform, k.Trial).Uint64()
	return &run{settings: a.family.settings, cuts: cuts, wide: p.wide(), debiased: p.debiased(), null: true, seed: seed}
}

// values are kept samples in an order in which the groups of the jackknife follow each other.
type values struct {
	run   *run
	order []int   // places
	rows  [][]int // of each unit: where the samples lie among its values
	known []*representation
	tight bool // there is no room to keep what is computed of all units
}

// valuesBelow lays out the kept samples of places below a limit.
func (a *accumulator) valuesBelow(limit int) *values {
	l := a.grid.Layout
	out := &values{known: make([]*representation, len(a.units))}
	for _, place := range a.kept.places {
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
	if len(cuts) >= fewestGroups {
		cuts = append(cuts, len(out.order))
	} else {
		cuts = nil
	}
	out.run = a.run(cuts)
	n, held := int64(len(out.order)), int64(0)
	for u, unit := range a.units {
		at, next := map[int]int{}, 0
		for _, place := range a.kept.places {
			if place < a.kept.limit[u] {
				at[place] = next
				next++
			}
		}
		var rows []int
		for _, place := range out.order {
			rows = append(rows, at[place])
		}
		out.rows = append(out.rows, rows)
		width := min(int64(unit.p), n)
		held += 8*3*width*width + 2*int64(len(cuts))*width*width
	}
	out.tight = a.grid.Budget > 0 && held > a.grid.Budget
	return out
}

// fromValues computes statistics of a form from kept values.
func (a *accumulator) fromValues(from *values, u, v int, wanted []kind, f form, out estimates) error {
	ctx, n := context.Background(), len(from.order)
	if wanted = enough(wanted, n, out); len(wanted) == 0 {
		return nil
	}
	if f == ofPairs && n <= a.family.settings.Neighbours {
		wanted = slices.DeleteFunc(wanted, func(k kind) bool { return k.name == MutualKNN })
		if slices.Contains(a.family.settings.Statistics, MutualKNN) {
			out[MutualKNN] = undefined(fmt.Sprintf("%d neighbours of %d samples: set fewer", a.family.settings.Neighbours, n))
		}
	}
	x, err := a.representation(ctx, from, u)
	if err != nil {
		return err
	}
	y, err := a.representation(ctx, from, v)
	if err != nil {
		return err
	}
	if f == ofPairs {
		err = from.run.fromPairs(ctx, x, y, wanted, out)
	} else {
		err = from.run.fromMoments(ctx, x, y, wanted, out)
	}
	if n < a.grid.Layout.N && f == ofPairs && n == a.family.settings.Samples {
		for _, k := range wanted {
			e := out[k.name]
			e.warnings = append(e.warnings, fmt.Sprintf("computed on %d of %d samples, the bound for statistics of n x n values", n, a.grid.Layout.N))
			out[k.name] = e
		}
	}
	if from.tight {
		clear(from.known)
	}
	return err
}

func (a *accumulator) representation(ctx context.Context, from *values, u int) (*representation, error) {
	if from.known[u] == nil {
		p := a.units[u].p
		source, err := Of(a.kept.rows[u], len(a.kept.rows[u])/p, p)
		if err != nil {
			return nil, err
		}
		s, err := newSample(ctx, a.units[u].layer.Name, source, from.rows[u])
		if err != nil {
			return nil, err
		}
		from.known[u] = from.run.newRepresentation(s)
	}
	return from.known[u], nil
}
