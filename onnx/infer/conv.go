package infer

import (
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/window"
)

// The layouts of operators that compute across space and channels.

// spaces are the letters of the spatial axes of a feature map, by their number.
var spaces = []string{1: "T", 2: "HW", 3: "THW"}

// featureMap gives x the meaning that convolutions and pools see in it: batch, channels, space.
// Spatial axes that have a meaning already keep it.
func featureMap(x layout) layout {
	if len(x) < 3 {
		return x
	}
	out := slices.Clone(x)
	out[1] = one('C', x[1].size())
	if n := len(x) - 2; n < len(spaces) {
		for i := range n {
			if !strings.ContainsRune("HWT", rune(x[2+i].letter())) {
				out[2+i] = one(spaces[n][i], x[2+i].size())
			}
		}
	}
	return out
}

func (c *node) conv(x layout) layout {
	w := c.arg(1)
	if c.node.GetOpType() == "QLinearConv" {
		w = c.arg(3)
	}
	if len(x) < 3 || len(w) != len(x) {
		return x.unsized()
	}
	out := c.windows(featureMap(x), w.sizes()[2:])
	out[1] = one('C', w[0].size())
	if c.node.GetOpType() == "ConvTranspose" {
		out[1] = one('C', times(w[1].size(), onnx.AttrInt(c.node, "group", 1)))
	}
	return out
}

func (c *node) pool(x layout) layout {
	if len(x) < 3 {
		return x.unsized()
	}
	return c.windows(featureMap(x), onnx.AttrInts(c.node, "kernel_shape"))
}

// windows gives the spatial axes the size that a sliding kernel leaves.
func (c *node) windows(x layout, kernel []int) layout {
	out := slices.Clone(x)
	n := len(x) - 2
	for i := range n {
		size := x[2+i].size()
		if i >= len(kernel) || kernel[i] < 0 || size < 0 {
			out[2+i] = x[2+i].resized(-1)
			continue
		}
		w := window.Of(c.node, kernel[i], i, n)
		if c.node.GetOpType() == "ConvTranspose" {
			size = window.Attr(c.node, "output_shape", i, w.OutputTransposed(size))
		} else {
			size = w.Output(size)
		}
		out[2+i] = x[2+i].resized(max(size, -1))
	}
	return out
}

// pooled is a feature map with one place.
func pooled(x layout) layout {
	out := featureMap(x)
	for i := 2; i < len(out); i++ {
		out[i] = out[i].resized(1)
	}
	return out
}

func (c *node) resize(x layout) layout {
	if x == nil {
		return nil
	}
	sizes, scales := c.val(3).ints(), c.val(2)
	if c.node.GetOpType() == "Upsample" || c.in.opset < 11 {
		sizes, scales = nil, c.val(1)
	}
	out := x.unsized()
	for i := range x {
		switch {
		case len(sizes) == len(x):
			out[i] = x[i].resized(sizes[i])
		case scales != nil && len(scales.data) == len(x) && x[i].size() >= 0 && scales.data[i] > 0 && scales.data[i] < 1<<10:
			out[i] = x[i].resized(int(float64(x[i].size()) * scales.data[i]))
		}
	}
	return out
}

// depthToSpace moves channels into space, or back.
func (c *node) depthToSpace(x layout, toSpace bool) layout {
	block := onnx.AttrInt(c.node, "blocksize", 1)
	if len(x) != 4 || block < 1 || block > 1<<10 {
		return x
	}
	out := featureMap(x)
	scale := func(i int, grow bool, by int) {
		size := out[i].size()
		if size < 0 {
			return
		}
		if grow {
			out[i] = out[i].resized(size * by)
		} else {
			out[i] = out[i].resized(size / by)
		}
	}
	scale(1, !toSpace, block*block)
	scale(2, toSpace, block)
	scale(3, toSpace, block)
	return out
}

// recurrent: X is t x n x c; Y is t x directions x n x hidden, Y_h and Y_c are directions x n x
// hidden.
func (c *node) recurrent(x layout) []layout {
	if len(x) != 3 {
		return nil
	}
	directions := 1
	if onnx.AttrString(c.node, "direction", "forward") == "bidirectional" {
		directions = 2
	}
	hidden := one('C', onnx.AttrInt(c.node, "hidden_size", -1))
	time := x[0]
	if time.letter() == '?' {
		time = one('T', time.size())
	}
	last := layout{one(blank, directions), x[1], hidden}
	return []layout{{time, one(blank, directions), x[1], hidden}, last, last}
}
