package infer

import (
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/window"
	"github.com/noether-ml/noether/tensor"
)

// The rules for the layouts of operators that compute across space and channels. x is the layout of
// the first input.

// spaces has the letters of the spatial axes of a feature map, by the number of these axes.
var spaces = []string{1: "T", 2: "HW", 3: "THW"}

// featureMap returns x with letters for batch, channels, space; spatial letters stay.
func featureMap(x layout) layout {
	if len(x) < 3 {
		return x
	}
	out := slices.Clone(x)
	out[1] = newAxis('C', x[1].size())
	if n := len(x) - 2; n < len(spaces) {
		for i := range n {
			if !strings.ContainsRune("HWT", rune(x[2+i].letter())) {
				out[2+i] = newAxis(spaces[n][i], x[2+i].size())
			}
		}
	}
	return out
}

func (op *operation) conv(x layout) layout {
	w := op.layout(1)
	if op.node.GetOpType() == "QLinearConv" {
		w = op.layout(3) // after the input, its scale and its zero point
	}
	if len(x) < 3 || len(w) != len(x) {
		return x.unsized()
	}
	out := op.windows(featureMap(x), w.sizes()[2:])
	out[1] = newAxis('C', w[0].size())
	if op.node.GetOpType() == "ConvTranspose" {
		out[1] = newAxis('C', times(w[1].size(), onnx.AttrInt(op.node, "group", 1)))
	}
	return out
}

func (op *operation) pool(x layout) layout {
	if len(x) < 3 {
		return x.unsized()
	}
	return op.windows(featureMap(x), onnx.AttrInts(op.node, "kernel_shape"))
}

// windows changes spatial sizes only.
func (op *operation) windows(x layout, kernel []int) layout {
	out := slices.Clone(x)
	n := len(x) - 2
	for i := range n {
		size := x[2+i].size()
		if i >= len(kernel) || kernel[i] < 0 || size < 0 {
			out[2+i] = x[2+i].resized(-1)
			continue
		}
		w := window.Of(op.node, kernel[i], i, n)
		if op.node.GetOpType() == "ConvTranspose" {
			size = window.Attr(op.node, "output_shape", i, w.OutputTransposed(size))
		} else {
			size = w.Output(size)
		}
		out[2+i] = x[2+i].resized(max(size, -1))
	}
	return out
}

// col2Im returns the layout of the images that columns, samples x (channels taps) x windows, are added to.
func (op *operation) col2Im(x layout) layout {
	block, image := op.value(2).ints(), op.value(1).ints()
	n := max(len(block), len(image))
	if len(x) != 3 || n == 0 || n >= len(spaces) {
		return nil
	}
	out := layout{x[0], newAxis('C', -1)}
	if taps := tensor.Size(block); len(block) > 0 && taps > 0 && x[1].size() > 0 {
		out[1] = newAxis('C', x[1].size()/taps)
	}
	for i := range n {
		size := -1
		if i < len(image) {
			size = max(image[i], -1)
		}
		out = append(out, newAxis(blank, size))
	}
	return featureMap(out)
}

// globalPool returns the layout of a feature map that is reduced to spatial size 1.
func globalPool(x layout) layout {
	out := featureMap(x)
	for i := 2; i < len(out); i++ {
		out[i] = out[i].resized(1)
	}
	return out
}

func (op *operation) resize(x layout) layout {
	if x == nil {
		return nil
	}
	sizes, scales := op.value(3).ints(), op.value(2) // of all axes: new sizes, or factors
	if op.node.GetOpType() == "Upsample" || op.in.opset < 11 {
		sizes, scales = nil, op.value(1)
	}
	out := x.unsized()
	for i := range x {
		switch {
		case len(sizes) == len(x):
			out[i] = x[i].resized(sizes[i])
		case scales != nil && len(scales.data) == len(x) && x[i].size() >= 0 && scales.data[i] > 0 && scales.data[i] < maxScale:
			out[i] = x[i].resized(int(float64(x[i].size()) * scales.data[i]))
		}
	}
	return out
}

// maxScale bounds the factor by which a node enlarges an axis; larger ones are malformed.
const maxScale = 1 << 10

const (
	toSpace = true
	toDepth = false
)

// moveBlocks is for DepthToSpace, which expands space by blocks of channels, and its inverse.
func (op *operation) moveBlocks(x layout, expands bool) layout {
	block := onnx.AttrInt(op.node, "blocksize", 1)
	if len(x) != 4 || block < 1 || block > maxScale {
		return x
	}
	out := featureMap(x)
	scale := func(i int, grow bool, by int) { // multiplies or divides the size of axis i
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
	scale(1, !expands, block*block)
	scale(2, expands, block)
	scale(3, expands, block)
	return out
}

// recurrent returns the layouts of LSTM, GRU and RNN with layout 0: X is t x n x c, Y is t x
// directions x n x hidden, Y_h and Y_c are directions x n x hidden.
func (op *operation) recurrent(x layout) []layout {
	if len(x) != 3 {
		return nil
	}
	directions := 1
	if onnx.AttrString(op.node, "direction", "forward") == "bidirectional" {
		directions = 2
	}
	hidden := newAxis('C', onnx.AttrInt(op.node, "hidden_size", -1))
	time := x[0]
	if time.letter() == '?' {
		time = newAxis('T', time.size())
	}
	last := layout{newAxis(blank, directions), x[1], hidden}
	return []layout{{time, newAxis(blank, directions), x[1], hidden}, last, last}
}
