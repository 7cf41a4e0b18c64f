package features

import (
	"fmt"
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Pooling says how a layer's activation on a sample becomes a vector.
type Pooling string

// Poolings. Axes of height, width, time and tokens are pooled; those of channels, and those that are not known, stay. A
// layer without anything to pool is taken as it is.
const (
	Mean    Pooling = "mean"
	Max     Pooling = "max"
	Class   Pooling = "class"   // the first token
	Flatten Pooling = "flatten" // nothing is pooled
)

// Poolings are all of them.
func Poolings() []Pooling { return []Pooling{Mean, Max, Class, Flatten} }

// A pool pools the activations of one layer.
type pool struct {
	kind  Pooling
	to    []int32 // for each element of a sample its place in the vector, -1 for those left out
	dim   int
	share float64 // 1 over the elements of one place
	sums  []float64
}

// Check tells why a layer cannot be pooled so, nil where it can.
func (p Pooling) Check(l onnx.Layer) error {
	switch {
	case !slices.Contains(Poolings(), p):
		return fmt.Errorf("pooling %q: it is mean, max, class or flatten", string(p))
	case p == Class && l.Axes != "NTC":
		return fmt.Errorf("pooling by the class token wants tokens, and the axes of %s are %s", l.Name, l.Axes)
	}
	return nil
}

// Dim is the length of a layer's vector.
func (p Pooling) Dim(l onnx.Layer) int {
	dim := 1
	for i, n := range l.Shape {
		if !p.pools(l, i) {
			dim *= n
		}
	}
	return dim
}

// pools reports whether axis i of a sample is pooled.
func (p Pooling) pools(l onnx.Layer, i int) bool {
	return p != Flatten && len(l.Axes) == len(l.Shape)+1 && strings.ContainsRune("HWT", rune(l.Axes[i+1]))
}

func newPool(p Pooling, l onnx.Layer) *pool {
	out := &pool{kind: p, dim: p.Dim(l), to: make([]int32, tensor.Size(l.Shape))}
	at := make([]int, len(l.Shape))
	for e := range out.to {
		place, left := 0, false
		for i, n := range l.Shape {
			if p.pools(l, i) {
				left = left || p == Class && at[i] > 0
			} else {
				place = place*n + at[i]
			}
		}
		if out.to[e] = int32(place); left {
			out.to[e] = -1
		}
		for i := len(at) - 1; i >= 0; i-- {
			if at[i]++; at[i] < l.Shape[i] {
				break
			}
			at[i] = 0
		}
	}
	out.share = float64(out.dim) / float64(max(1, len(out.to)))
	out.sums = make([]float64, out.dim)
	return out
}

// apply pools the activation z of one sample into dst, dim numbers.
func (p *pool) apply(dst, z []float32) {
	switch {
	case len(z) == p.dim:
		copy(dst, z)
	case p.kind == Mean:
		clear(p.sums)
		for e, v := range z {
			p.sums[p.to[e]] += float64(v)
		}
		for i, s := range p.sums {
			dst[i] = float32(s * p.share)
		}
	case p.kind == Max:
		p.largest(dst, z)
	default: // Class
		for e, v := range z {
			if p.to[e] >= 0 {
				dst[p.to[e]] = v
			}
		}
	}
}

func (p *pool) largest(dst, z []float32) {
	seen := p.sums // marks places that have a value
	clear(seen)
	for e, v := range z {
		if i := p.to[e]; seen[i] == 0 || v > dst[i] {
			dst[i], seen[i] = v, 1
		}
	}
}
