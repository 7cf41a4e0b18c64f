package similarity

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// New returns the measure similarity.
func New(s Settings) (measure.Comparison, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return &comparison{s}, nil
}

type comparison struct{ settings Settings }

func (*comparison) Name() string { return "similarity" }

func (*comparison) Descriptor() measure.Descriptor { return Descriptor() }

func (*comparison) Version() int { return 5 }

func (f *comparison) Settings() any { return f.settings.encode() }

// Statistics returns the names of the selected statistics. A study may list the measure several
// times with different ones.
func (f *comparison) Statistics() []string { return f.settings.Statistics }

// Directional reports whether a selected statistic depends on which layer is A.
func (f *comparison) Directional() bool { return Descriptor().Directional(f.settings.Statistics...) }

// Pooling implements measure.Pooler.
func (f *comparison) Pooling(l tensor.Layer) string { return string(newLayer(l, f.settings).pooling()) }

// Skip returns why no selected statistic applies to the first pair of a grid, or "".
func (f *comparison) Skip(g measure.Grid) string {
	for _, l := range []tensor.Layer{g.A[0], g.B[0]} {
		if l.Shape == nil {
			return "the shape of the layer is not known"
		}
		if kind := f.settings.tokenPool(); kind != "" {
			if err := kind.Check(l); err != nil {
				return err.Error()
			}
		}
	}
	refused, why := f.planOf(g, 0).refused, ""
	for _, k := range f.settings.selected() {
		if why = refused[k.input]; why == "" {
			return ""
		}
	}
	return why
}

// Cost returns the bytes for all layers and pairs, and for the block being filled.
func (f *comparison) Cost(g measure.Grid) int64 {
	layers, index := layersOf(g, f.settings)
	b, l := int64(f.blockOf(g)), int64(g.Layout.Block)
	var total, widest int64
	stored, moments := make([]int, len(layers)), make([]int64, len(layers))
	for i, pair := range g.Pairs {
		plan := f.planOf(g, i)
		for _, u := range []int{index[0][pair[0]], index[1][pair[1]]} {
			stored[u] = max(stored[u], plan.stored)
			if plan.moments {
				moments[u] = max(moments[u], plan.layerBytes(layers[u].p))
			}
		}
		total += plan.pairBytes()
	}
	for u, layer := range layers {
		p := int64(layer.p)
		widest = max(widest, p)
		// stored values, moments, the block, the Gram matrix of a minibatch, totals and small
		// slices
		total += 4*int64(stored[u])*p + moments[u] + 4*b*p + 8*l*l + 16*int64(g.Layout.Groups) + 256
		if moments[u] > 0 && p <= widestNarrow {
			total += 8 * b * p // a copy beside the other narrow layers (see narrowLayers)
		}
	}
	// the block in float64, and places
	return total + 16*b*widest + 16*int64(g.Layout.N) + 4096
}

func (f *comparison) New(g measure.Grid) (measure.GridAccumulator, error) {
	for _, l := range slices.Concat(g.A, g.B) {
		if l.Shape == nil {
			return nil, fmt.Errorf("similarity: the shape of layer %q is not known", l.Name)
		}
	}
	return newAccumulator(f, g), nil
}

// A plan determines whether a pair's moments or values are held, whatever the other pairs.
type plan struct {
	settings Settings
	layout   measure.Layout
	p, q     int              // variables of layers A and B
	stored   int              // samples whose values are stored, the first in the layout's order
	moments  bool             // second moments are gathered
	groups   bool             // second moments of each group of the jackknife are gathered too
	refused  map[input]string // by input, such as minibatches: why it cannot be used
}

func (f *comparison) planOf(g measure.Grid, i int) plan {
	pair := g.Pairs[i]
	a, b := newLayer(g.A[pair[0]], f.settings), newLayer(g.B[pair[1]], f.settings)
	out := plan{settings: f.settings, layout: g.Layout, p: a.p, q: b.p, refused: map[input]string{}}
	fits := func(bytes int64) bool { return g.Budget == 0 || bytes <= g.Budget }
	// With 80 samples or more, the blocks of measure.NewLayout have minBatch samples or more.
	if len(f.settings.selected(minibatchInput)) > 0 && g.Layout.Block < minBatch {
		out.refused[minibatchInput] = fmt.Sprintf("%s needs 80 samples or more: it takes blocks of %d of %d; take %s", MinibatchCKA, g.Layout.Block, g.Layout.N, DebiasedCKA)
	}
	if len(f.settings.selected(pairwiseInput)) > 0 {
		n := min(g.Layout.N, f.settings.Samples)
		if bytes := out.storedBytes(n); fits(bytes) {
			out.stored = n
		} else {
			out.refused[pairwiseInput] = memoryMessage(bytes, n, a.p, b.p)
		}
	}
	if len(f.settings.selected(momentInput)) > 0 {
		out.chooseMoments(fits)
	}
	return out
}

// chooseMoments takes moments if both layers have fewer than n - 1 variables and moments take less
// memory, else values and, if these do not fit, moments without groups, so without intervals. If
// nothing fits, it refuses.
func (p *plan) chooseMoments(fits func(int64) bool) {
	n := p.layout.N
	stored := p.storedBytes(n)
	if max(p.p, p.q) < n-1 {
		p.moments, p.groups = true, p.settings.Interval
		if bytes := p.momentBytes(); bytes <= stored && fits(bytes) {
			return
		}
		if p.groups = false; !fits(stored) && fits(p.momentBytes()) {
			return
		}
		p.moments = false
	}
	if fits(stored) {
		p.stored = max(p.stored, n)
		return
	}
	p.refused[momentInput] = memoryMessage(stored, n, p.p, p.q)
}

// memoryMessage says that the values of n samples, p and q for each, exceed the memory bound.
func memoryMessage(bytes int64, n, p, q int) string {
	return fmt.Sprintf("%d samples of %d and %d values take %d MiB, beyond the memory bound: set pool: mean, a smaller limit, or more memory, or take %s",
		n, p, q, bytes>>20+1, MinibatchCKA)
}

func (p plan) storedBytes(n int) int64 { return 4 * int64(n) * int64(p.p+p.q) }

func (p plan) momentBytes() int64 { return p.layerBytes(p.p) + p.layerBytes(p.q) + p.pairBytes() }

// layerBytes returns the bytes of a layer's moments: means, halves of symmetric matrices (float64
// for all, float32 for each group), fourth moments, and 64 bytes for the fields of each.
func (p plan) layerBytes(width int) int64 {
	w, groups := int64(width), int64(p.momentGroups())
	bytes := 8*w + 4*w*(w+1) + groups*(8*w+2*w*(w+1)+64)
	if p.debiased() {
		bytes += (1 + groups) * (16*w + 64)
	}
	return bytes
}

// pairBytes returns the pair's further bytes: products and means for all, each group and the null,
// and fourth moments.
func (p plan) pairBytes() int64 {
	a, b, groups := int64(p.p), int64(p.q), int64(p.momentGroups())
	bytes := 16*int64(p.layout.Groups) + 256
	if !p.moments {
		return bytes
	}
	bytes += 8*(a*b+a+b) + groups*(4*a*b+8*(a+b)+64)
	if p.debiased() {
		bytes += (1 + groups) * (8*(a+b) + 64)
	}
	bytes += int64(p.draws()) * 8 * (a*b + a + b)
	return bytes
}

func (p plan) momentGroups() int {
	if p.groups {
		return p.layout.Groups
	}
	return 0
}

func (p plan) debiased() bool { return slices.Contains(p.settings.Statistics, DebiasedCKA) }

func (p plan) inFloat64() bool { return len(inFloat64(p.settings.selected())) > 0 }

// drawsNull reports whether a selected statistic has a null from shuffled pairs.
func (p plan) drawsNull() bool {
	return p.settings.Null && slices.ContainsFunc(p.settings.selected(), func(k statistic) bool { return k.drawnNull })
}

// draws returns the number of shuffles whose moments are gathered.
func (p plan) draws() int {
	switch {
	case !p.drawsNull():
		return 0
	case p.settings.Calibrate:
		return 10
	}
	return 1
}
