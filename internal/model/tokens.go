package model

import (
	"fmt"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// maxPrefix is the largest number of class or register tokens that is inferred.
const maxPrefix = 16

// setTokens sets prefix and grid of the layers with axes "NTC". They are those of the options or,
// for other numbers of tokens, of the convolution that divides an image into patches. It is an
// error if those of the options fit no layer.
func (m *Model) setTokens(layers, all []tensor.Layer) error {
	given, used := m.options.Tokens, false
	h, w, known := m.patchGrid(all)
	known = known && !m.TakesArrays()
	for i := range layers {
		l := &layers[i]
		if l.Axes != "NTC" || len(l.Shape) != 2 { // Shape is without the batch
			continue
		}
		if given != nil && given.Prefix+given.Height*given.Width == l.Shape[0] {
			l.Tokens, used = given, true
		} else if known {
			l.Tokens = tokensOf(l.Shape[0], h, w)
		} else if m.TakesArrays() { // a sequence, such as a text
			l.Tokens = &tensor.Tokens{Height: 1, Width: l.Shape[0]}
		}
	}
	if given != nil && !used {
		return settingError(fmt.Errorf("none of the chosen layers has %d tokens, which a prefix of %d and a grid of %d x %d ask for",
			given.Prefix+given.Height*given.Width, given.Prefix, given.Height, given.Width), "tokens")
	}
	return nil
}

// patchGrid returns the output size, above 1 x 1, of the first convolution whose stride is its
// kernel's size.
func (m *Model) patchGrid(all []tensor.Layer) (h, w int, ok bool) {
	shapes := map[string][]int{}
	for _, l := range all {
		shapes[l.Name] = l.Shape
	}
	for _, n := range m.nodes() {
		if n.GetOpType() != "Conv" || len(n.Output) == 0 {
			continue
		}
		kernel, strides, shape := onnx.AttrInts(n, "kernel_shape"), onnx.AttrInts(n, "strides"), shapes[n.Output[0]]
		if len(kernel) == 2 && len(strides) == 2 && kernel[0] == strides[0] && kernel[1] == strides[1] && kernel[0]*kernel[1] > 1 && len(shape) == 3 {
			return shape[1], shape[2], true
		}
	}
	return 0, 0, false
}

// tokensOf returns the arrangement of t tokens of a network with h x w patches, or nil: a prefix of
// at most maxPrefix tokens and the grid, or, if patches are merged, the grid with its sides halved
// one or more times.
func tokensOf(t, h, w int) *tensor.Tokens {
	if prefix := t - h*w; prefix >= 0 && prefix <= maxPrefix {
		return &tensor.Tokens{Prefix: prefix, Height: h, Width: w}
	}
	for h%2 == 0 && w%2 == 0 {
		h, w = h/2, w/2
		if h*w == t && t > 1 {
			return &tensor.Tokens{Height: h, Width: w}
		}
	}
	return nil
}
