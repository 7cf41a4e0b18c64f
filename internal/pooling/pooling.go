// Package pooling converts the activation of a layer on a sample to a vector, such as by the mean
// over positions.
package pooling

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/tensor"
)

// A Kind is a way of pooling.
type Kind string

// The kinds. They pool the axes of height (H), width (W), time and tokens (both T), but not
// samples (N), channels (C) and unknown axes; see tensor.Axes. A layer without axes to pool is
// flattened.
const (
	Mean    Kind = "mean"    // the mean over these axes
	Max     Kind = "max"     // the largest value over these axes
	Class   Kind = "class"   // the first position of the axis T, such as a class token; only for the axes NTC
	Patch   Kind = "patch"   // the mean over the tokens of patches, without those before them; only for the axes NTC
	Flatten Kind = "flatten" // nothing is pooled
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Mean, Max, Class, Patch, Flatten} }

type pool struct {
	kind    Kind
	run     int       // number of successive elements whose mean is one value of the vector, if the pooled axes are the last; else 0
	targets []int32   // unless run > 0: index in the vector of each element of an activation; -1: left out
	dim     int       // length of the vector
	share   float64   // 1 / number of elements that are pooled into one
	sums    []float64 // a buffer of length dim
}

// Check returns an error if the layer cannot be pooled in this way.
func (p Kind) Check(l tensor.Layer) error {
	switch {
	case !slices.Contains(Kinds(), p):
		return fmt.Errorf("unknown pooling %q: it must be mean, max, class, patch or flatten", string(p))
	case p == Class && l.Axes != "NTC":
		return fmt.Errorf("pooling by the class token needs an axis of tokens, but the axes of %s are %s", l.Name, l.Axes)
	case p == Patch:
		if l.Axes != "NTC" {
			return fmt.Errorf("pooling over the tokens of patches needs an axis of tokens, but the axes of %s are %s", l.Name, l.Axes)
		}
		m, why := l.Maps()
		if why != "" {
			return fmt.Errorf("pooling over the tokens of patches of %s: %s", l.Name, why)
		}
		if len(m.Grid) != 2 {
			return fmt.Errorf("pooling over the tokens of patches: which of the %d tokens of %s are patches is not known; set the key tokens of the model, as in tokens: {prefix: 1, grid: [14, 14]}", l.Shape[0], l.Name)
		}
	}
	return nil
}

// ID identifies the pooling of a layer of known axes: Patch depends on which tokens are patches.
func (p Kind) ID(l tensor.Layer) string {
	if n := p.From(l); n > 0 {
		return fmt.Sprintf("%s from %d", string(p), n)
	}
	return string(p)
}

// From returns the number of tokens that are left out, before those of patches.
func (p Kind) From(l tensor.Layer) int {
	if p != Patch {
		return 0
	}
	m, _ := l.Maps()
	return m.Base / max(1, m.Channels)
}

// Pool returns a function that pools the activation z of one sample into dst, which has the length
// Dim. It must not be called by several goroutines at once.
func (p Kind) Pool(l tensor.Layer) func(dst, z []float32) { return newPool(p, l).apply }

// Dim returns the length of the vector to which a layer's activation on a sample is pooled.
func (p Kind) Dim(l tensor.Layer) int {
	dim := 1
	for i, n := range l.Shape {
		if !p.pools(l, i) {
			dim *= n
		}
	}
	return dim
}

// Axes returns the axes of a sample that are pooled, counted from 0 after the axis of samples.
func (p Kind) Axes(l tensor.Layer) (axes []int) {
	for i := range l.Shape {
		if p.pools(l, i) {
			axes = append(axes, i)
		}
	}
	return axes
}

// pools reports whether axis i of a sample is pooled. l.Shape is that of one sample, and l.Axes has
// the axis of samples, N, before its axes.
func (p Kind) pools(l tensor.Layer, i int) bool {
	return p != Flatten && len(l.Axes) == len(l.Shape)+1 && strings.ContainsRune("HWT", rune(l.Axes[i+1]))
}

// newPool returns the pool of a layer, whose axes must allow the pooling (Kind.Check).
func newPool(p Kind, l tensor.Layer) *pool {
	size := tensor.Size(l.Shape)
	out := &pool{kind: p, dim: p.Dim(l)}
	before := p.From(l)
	out.share = float64(out.dim) / float64(max(1, size-before*out.dim))
	out.sums = make([]float64, out.dim)
	if p == Mean && p.poolsLast(l) {
		out.run = size / max(1, out.dim)
		return out
	}
	out.targets = make([]int32, size)
	index := make([]int, len(l.Shape)) // of element e, along each axis
	for e := range out.targets {
		target, excluded := 0, false
		for i, n := range l.Shape {
			if p.pools(l, i) {
				excluded = excluded || p == Class && index[i] > 0 || index[i] < before
			} else {
				target = target*n + index[i]
			}
		}
		if out.targets[e] = int32(target); excluded {
			out.targets[e] = -1
		}
		for i := len(index) - 1; i >= 0; i-- {
			if index[i]++; index[i] < l.Shape[i] {
				break
			}
			index[i] = 0
		}
	}
	return out
}

// poolsLast reports whether no axis that is kept follows a pooled one.
func (p Kind) poolsLast(l tensor.Layer) bool {
	for i := 1; i < len(l.Shape); i++ {
		if p.pools(l, i-1) && !p.pools(l, i) {
			return false
		}
	}
	return true
}

// apply pools the activation z of one sample into dst, which has the length of the vector.
func (p *pool) apply(dst, z []float32) {
	switch {
	case len(z) == p.dim:
		copy(dst, z)
	case p.run > 0:
		for i := range dst {
			dst[i] = float32(sum(z[i*p.run:(i+1)*p.run]) * p.share)
		}
	case p.kind == Mean || p.kind == Patch:
		clear(p.sums)
		for e, v := range z {
			if p.targets[e] >= 0 {
				p.sums[p.targets[e]] += float64(v)
			}
		}
		for i, s := range p.sums {
			dst[i] = float32(s * p.share)
		}
	case p.kind == Max:
		p.maxInto(dst, z)
	default: // Class
		for e, v := range z {
			if p.targets[e] >= 0 {
				dst[p.targets[e]] = v
			}
		}
	}
}

// sum returns the sum of values. It has four partial sums, so that the processor can add in
// parallel.
func sum(z []float32) float64 {
	var a, b, c, d float64
	for len(z) >= 4 {
		a, b, c, d = a+float64(z[0]), b+float64(z[1]), c+float64(z[2]), d+float64(z[3])
		z = z[4:]
	}
	for _, v := range z {
		a += float64(v)
	}
	return (a + b) + (c + d)
}

// maxInto writes the largest of the elements that are pooled into each element of dst.
func (p *pool) maxInto(dst, z []float32) {
	seen := p.sums // marks elements of dst that have a value
	clear(seen)
	for e, v := range z {
		if i := p.targets[e]; seen[i] == 0 || v > dst[i] {
			dst[i], seen[i] = v, 1
		}
	}
}
