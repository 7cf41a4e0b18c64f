package similarity

import (
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// A layer describes how activations become p variables: all values, means of channels, or pooled
// tokens.
type layer struct {
	tensor.Layer
	side  measure.Side
	index int // among the layers of its side
	p     int // number of variables
	// A sample is outer x channels x inner, positions around the channel axis; outer 0: no means.
	outer, channels, inner int
	pool                   pooling.Kind // of tokens; "": all values, or means of channels
}

// newLayer takes channel means with pool: mean and one channel axis.
func newLayer(l tensor.Layer, s Settings) layer {
	u := layer{Layer: l, p: tensor.Size(l.Shape)}
	if kind := s.tokenPool(); kind != "" && kind.Check(l) == nil {
		u.p, u.pool = kind.Dim(l), kind
		return u
	}
	axes := string(l.Axes) // a letter for each axis, such as NCHW; l.Shape lacks the batch axis N
	c := strings.IndexByte(axes, 'C')
	if s.Pool != "mean" || c < 1 || strings.Count(axes, "C") != 1 || len(axes) != len(l.Shape)+1 {
		return u
	}
	u.outer, u.channels, u.inner = tensor.Size(l.Shape[:c-1]), l.Shape[c-1], tensor.Size(l.Shape[c:])
	u.p = u.channels
	return u
}

// pooling returns how package pooling computes the variables from the activations; "": not at all.
func (u layer) pooling() pooling.Kind {
	switch {
	case u.pool != "":
		return u.pool
	case u.outer > 0 && pooling.Mean.Dim(u.Layer) == u.p && tensor.Size(u.Shape) > u.p:
		return pooling.Mean
	}
	return ""
}

// accepts reports whether z has activations, or pooled ones, of n samples.
func (u layer) accepts(z tensor.Tensor, n int) bool {
	if z.Rank() == 0 || z.Shape[0] != n {
		return false
	}
	return slices.Equal(z.Shape[1:], u.Shape) || u.pooling() != "" && slices.Equal(z.Shape[1:], []int{u.p})
}

// rows appends b x p variables of z, b x shape or pooled.
func (u layer) rows(dst []float32, z tensor.Tensor) []float32 {
	if slices.Equal(z.Shape[1:], []int{u.p}) {
		return append(dst, z.Data...)
	}
	if u.pool != "" {
		size, from := tensor.Size(u.Shape), len(dst)
		pool := u.pool.Pool(u.Layer)
		dst = append(dst, make([]float32, len(z.Data)/size*u.p)...)
		for data := z.Data; len(data) > 0; data = data[size:] {
			pool(dst[from:from+u.p], data[:size])
			from += u.p
		}
		return dst
	}
	if u.outer == 0 {
		return append(dst, z.Data...)
	}
	size := u.outer * u.channels * u.inner
	for data := z.Data; len(data) > 0; data = data[size:] {
		for c := range u.channels {
			var sum float64
			for o := range u.outer {
				for _, v := range data[(o*u.channels+c)*u.inner : (o*u.channels+c+1)*u.inner] {
					sum += float64(v)
				}
			}
			dst = append(dst, float32(sum/float64(u.outer*u.inner)))
		}
	}
	return dst
}

// tokenPool returns the pooling of tokens that the settings ask for; "" for none.
func (s Settings) tokenPool() pooling.Kind {
	if kind := pooling.Kind(s.Pool); kind == pooling.Class || kind == pooling.Patch {
		return kind
	}
	return ""
}

// layersOf returns a grid's distinct layers, with the position of each by side. With both sides
// equal, a common layer is listed once.
func layersOf(g measure.Grid, s Settings) (layers []layer, index [2][]int) {
	known := map[string]int{}
	for side, list := range [][]tensor.Layer{g.A, g.B} {
		for i, l := range list {
			if u, ok := known[l.Name]; ok && g.Self && side == 1 {
				index[side] = append(index[side], u)
				continue
			}
			if side == 0 {
				known[l.Name] = len(layers)
			}
			u := newLayer(l, s)
			u.side, u.index = measure.Side(side), i
			index[side] = append(index[side], len(layers))
			layers = append(layers, u)
		}
	}
	return layers, index
}
