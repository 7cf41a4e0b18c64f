package similarity

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
)

// New returns the measure similarity: the statistics of the settings, of every pair of layers.
func New(s Settings) (measure.Comparison, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return &family{s}, nil
}

type family struct{ settings Settings }

func (*family) Name() string { return "similarity" }

func (*family) Descriptor() measure.Descriptor { return Descriptor() }

func (*family) Version() int { return 2 }

func (f *family) Settings() any { return f.settings }

// Directional reports whether one of the statistics asked for takes one side as given: the weights of pwcca are
// those of A, and linear-regression predicts A from B.
func (f *family) Directional() bool { return Descriptor().Directional(f.settings.Statistics...) }

// Skip returns why a pair can have none of the statistics.
func (f *family) Skip(g measure.Grid) string {
	for _, l := range []onnx.Layer{g.A[0], g.B[0]} {
		if l.Shape == nil {
			return "the shape of the layer is not known"
		}
	}
	refused, why := f.planOf(g, 0).refused, ""
	for _, k := range f.settings.wanted(ofMoments, ofPairs, ofMinibatch) {
		if why = refused[k.form]; why == "" {
			return ""
		}
	}
	return why
}

// Cost counts what is held of every layer and every pair, and a block of samples that is being filled.
func (f *family) Cost(g measure.Grid) int64 {
	units, of := unitsOf(g, f.settings)
	b := int64(g.Layout.Block)
	var total, widest int64
	keep, sides := make([]int, len(units)), make([]int64, len(units))
	for i, pair := range g.Pairs {
		plan, u, v := f.planOf(g, i), of[0][pair[0]], of[1][pair[1]]
		keep[u], keep[v] = max(keep[u], plan.keep), max(keep[v], plan.keep)
		if plan.moments {
			sides[u], sides[v] = max(sides[u], plan.sideBytes(units[u].p)), max(sides[v], plan.sideBytes(units[v].p))
		}
		total += plan.pairBytes()
	}
	for u, unit := range units {
		p := int64(unit.p)
		widest = max(widest, p)
		total += 4*int64(keep[u])*p + sides[u] + 4*b*p + 8*b*b + 16*int64(g.Layout.Groups) + 256
	}
	return total + 16*b*widest + 16*int64(g.Layout.N) + 4096
}

func (f *family) New(g measure.Grid) (measure.GridAccumulator, error) {
	for _, l := range slices.Concat(g.A, g.B) {
		if l.Shape == nil {
			return nil, fmt.Errorf("similarity: the shape of layer %q is not known", l.Name)
		}
	}
	return newAccumulator(f, g), nil
}

// A plan says what is held for a pair of layers. It depends on that pair alone, not on the grid that it is part of.
type plan struct {
	settings Settings
	layout   measure.Layout
	p, q     int
	keep     int             // the samples of the first places whose values are kept
	moments  bool            // second moments are gathered
	groups   bool            // and those of the groups of the jackknife
	refused  map[form]string // why there is nothing for the statistics of a form
}

// planOf lays out the i-th pair of a grid.
func (f *family) planOf(g measure.Grid, i int) plan {
	pair := g.Pairs[i]
	a, b := unitOf(g.A[pair[0]], f.settings), unitOf(g.B[pair[1]], f.settings)
	out := plan{settings: f.settings, layout: g.Layout, p: a.p, q: b.p, refused: map[form]string{}}
	fits := func(bytes int64) bool { return g.Budget == 0 || bytes <= g.Budget }
	if len(f.settings.wanted(ofMinibatch)) > 0 && g.Layout.Block < minBatch {
		out.refused[ofMinibatch] = fmt.Sprintf("%s needs 80 samples or more: it takes blocks of %d of %d; take %s", MinibatchCKA, g.Layout.Block, g.Layout.N, DebiasedCKA)
	}
	if len(f.settings.wanted(ofPairs)) > 0 {
		n := min(g.Layout.N, f.settings.Samples)
		if bytes := out.kept(n); fits(bytes) {
			out.keep = n
		} else {
			out.refused[ofPairs] = refusal(bytes, n, a.p, b.p)
		}
	}
	if len(f.settings.wanted(ofMoments)) > 0 {
		out.chooseMoments(fits)
	}
	return out
}

// chooseMoments decides between keeping moments and keeping values: whichever takes less.
func (p *plan) chooseMoments(fits func(int64) bool) {
	n := p.layout.N
	kept := p.kept(n)
	if max(p.p, p.q) < n-1 {
		p.moments, p.groups = true, true
		if bytes := p.momentBytes(); bytes <= kept && fits(bytes) {
			return
		}
		if p.groups = false; !fits(kept) && fits(p.momentBytes()) {
			return
		}
		p.moments = false
	}
	if fits(kept) {
		p.keep = max(p.keep, n)
		return
	}
	p.refused[ofMoments] = refusal(kept, n, p.p, p.q)
}

func refusal(bytes int64, n, p, q int) string {
	return fmt.Sprintf("%d samples of %d and %d values take %d MiB, beyond the memory bound: set pool: mean, a smaller limit, or more memory, or take %s",
		n, p, q, bytes>>20+1, MinibatchCKA)
}

// kept is the bytes of the values of n samples.
func (p plan) kept(n int) int64 { return 4 * int64(n) * int64(p.p+p.q) }

func (p plan) momentBytes() int64 { return p.sideBytes(p.p) + p.sideBytes(p.q) + p.pairBytes() }

// sideBytes is the bytes of the moments of one layer.
func (p plan) sideBytes(width int) int64 {
	w := int64(width)
	bytes := 8*w + 4*w*(w+1)
	if p.groups {
		bytes += int64(p.layout.Groups) * (8*w + 2*w*(w+1) + 64)
	}
	if p.debiased() {
		bytes += (1 + p.grouped()) * (16*w + 64)
	}
	return bytes
}

// pairBytes is the bytes of what is of the pair alone.
func (p plan) pairBytes() int64 {
	a, b, groups := int64(p.p), int64(p.q), int64(p.layout.Groups)
	bytes := 16*groups + 256
	if !p.moments {
		return bytes
	}
	bytes += 8 * (a*b + a + b)
	if p.groups {
		bytes += groups * (4*a*b + 8*(a+b) + 64)
	}
	if p.debiased() {
		bytes += (1 + p.grouped()) * (8*(a+b) + 64)
	}
	if p.shuffles() {
		bytes += 8 * (a*b + a + b)
	}
	return bytes
}

// grouped is the number of groups whose moments are gathered.
func (p plan) grouped() int64 {
	if p.groups {
		return int64(p.layout.Groups)
	}
	return 0
}

func (p plan) debiased() bool { return slices.Contains(p.settings.Statistics, DebiasedCKA) }

func (p plan) wide() bool {
	return slices.ContainsFunc(p.settings.wanted(ofMoments), func(k kind) bool { return k.wide })
}

func (p plan) shuffles() bool {
	return slices.ContainsFunc(p.settings.wanted(ofMoments), func(k kind) bool { return k.shuffle })
}
