//go:build cgo

package grad_test

import (
	"github.com/noether-ml/noether/onnx"
)

var poolCases = []opCase{
	{"MaxPool", []int{7, 8, 10, 11, 12, 22}, drawMaxPool},
	{"AveragePool", []int{7, 10, 11, 19, 22}, drawAveragePool},
	{"LpPool", []int{7, 11, 18, 22}, drawLpPool},
	{"GlobalAveragePool", []int{7, 22}, func(g *gen) trial { return unary(g.smooth(g.dims(g.between(3, 5), 1, 4)...), nil) }},
	{"GlobalMaxPool", []int{7, 22}, func(g *gen) trial { return unary(g.distinct(g.dims(g.between(3, 5), 1, 4)...), nil) }},
	{"GlobalLpPool", []int{7}, func(g *gen) trial {
		return unary(g.positive(g.dims(g.between(3, 5), 1, 4)...), g.maybe("p", g.between(1, 3)))
	}},
}

// pool draws a shape and the attributes of a pool.
func (g *gen) pool(dilations, ceil int) (shape []int, attrs onnx.Attrs) {
	n := []int{2, 2, 1, 2, 3}[g.trial%5]
	kernel := g.dims(n, 1, 3)
	attrs, span := g.window(kernel, g.opset >= dilations)
	attrs["kernel_shape"] = kernel
	switch g.IntN(4) {
	case 0:
		attrs["auto_pad"] = []string{"SAME_UPPER", "SAME_LOWER", "VALID"}[g.IntN(3)]
		if attrs["auto_pad"] != "VALID" {
			delete(attrs, "dilations")
		}
	case 1, 2:
		pads := make([]int, 2*n)
		for i := range pads {
			pads[i] = g.IntN(kernel[i%n])
		}
		attrs["pads"] = pads
	}
	if g.opset >= ceil && attrs["auto_pad"] == nil && g.coin() {
		attrs["ceil_mode"] = 1
	}
	shape = g.dims(2, 1, 2)
	for i := range n {
		shape = append(shape, span[i]+g.between(0, 5))
		if strides, ok := attrs["strides"].([]int); ok && attrs["auto_pad"] != nil {
			strides[i] = min(strides[i], kernel[i]) // else the engine finds a negative padding
		}
	}
	return shape, attrs
}

func drawMaxPool(g *gen) trial {
	shape, attrs := g.pool(10, 10)
	tr := unary(g.distinct(shape...), attrs)
	tr.space = true
	if g.opset >= 8 && g.IntN(3) == 0 {
		tr.outputs, tr.loss = 2, []int{0}
		attrs["storage_order"] = g.IntN(2)
	}
	return tr
}

func drawAveragePool(g *gen) trial {
	shape, attrs := g.pool(19, 10)
	if g.coin() {
		attrs["count_include_pad"] = 1
	}
	tr := unary(g.smooth(shape...), attrs)
	tr.space = true
	return tr
}

func drawLpPool(g *gen) trial {
	shape, attrs := g.pool(18, 18)
	if g.coin() {
		attrs["p"] = g.between(1, 3)
	}
	tr := unary(g.positive(shape...), attrs)
	tr.space = true
	return tr
}

var normCases = []opCase{
	{"BatchNormalization", []int{7, 9, 14, 15}, drawBatchNorm},
	{"InstanceNormalization", []int{7, 22}, func(g *gen) trial {
		shape, attrs := append(g.dims(2, 1, 3), g.dims(g.between(2, 3), 3, 4)...), onnx.Attrs(nil)
		if g.coin() { // of few elements the deviation may be small, and slopes change fast
			shape, attrs = append(g.dims(2, 1, 3), g.dims(g.between(1, 3), 2, 4)...), onnx.Attrs{"epsilon": 0.5}
		}
		return trial{operands: []operand{g.smooth(shape...), g.smooth(shape[1]), g.smooth(shape[1])}, attrs: attrs}
	}},
	{"GroupNormalization", []int{18, 21}, func(g *gen) trial {
		groups, each := g.between(1, 3), g.between(1, 3)
		shape := append([]int{g.between(1, 2), groups * each}, g.dims(g.between(1, 3), 2, 3)...)
		n := groups
		if g.opset >= 21 {
			n *= each
		}
		return trial{operands: []operand{g.smooth(shape...), g.smooth(n), g.smooth(n)}, attrs: onnx.Attrs{"num_groups": groups, "epsilon": 0.01}}
	}},
	{"LayerNormalization", []int{17}, func(g *gen) trial {
		shape := g.dims(g.between(2, 4), 2, 4)
		axis := g.between(0, len(shape)-1)
		tr := trial{operands: []operand{g.smooth(shape...), g.smooth(shape[axis:]...)}, attrs: onnx.Attrs{"axis": g.signed(axis, len(shape)), "epsilon": 0.01}}
		if g.coin() {
			tr.operands = append(tr.operands, g.smooth(shape[axis:]...))
		}
		if g.IntN(3) == 0 {
			tr.outputs, tr.loss = 3, []int{0}
		}
		return tr
	}},
	{"LpNormalization", []int{7, 22}, func(g *gen) trial {
		shape := g.dims(g.between(1, 4), 2, 4)
		attrs := onnx.Attrs{"p": g.between(1, 2)}
		if g.coin() {
			attrs["axis"] = g.signed(g.IntN(len(shape)), len(shape))
		}
		return unary(g.signless(shape...), attrs)
	}},
	{"LRN", []int{7, 13}, func(g *gen) trial {
		attrs := onnx.Attrs{"size": 2*g.between(0, 2) + 1}
		if g.coin() {
			attrs["alpha"], attrs["beta"], attrs["bias"] = 0.3, 0.6, 2.0
		}
		return unary(g.smooth(g.between(1, 2), g.between(1, 6), g.between(1, 3), g.between(1, 3)), attrs)
	}},
	{"Softmax", []int{7, 11, 13}, drawSoftmax},
	{"LogSoftmax", []int{7, 11, 13}, drawSoftmax},
}

func drawSoftmax(g *gen) trial {
	shape := g.some()
	attrs := g.maybe("axis", g.signed(g.IntN(len(shape)), len(shape)))
	if len(shape) == 1 && g.opset < 13 {
		attrs = onnx.Attrs{"axis": 0} // the default is 1
	}
	return unary(g.smooth(shape...), attrs)
}

func drawBatchNorm(g *gen) trial {
	shape := append([]int{g.between(2, 3), g.between(1, 3)}, g.dims(g.between(0, 3), 2, 3)...)
	c := shape[1]
	tr := trial{
		attrs:    onnx.Attrs{"epsilon": 0.01},
		operands: []operand{g.smooth(shape...), g.smooth(c), g.smooth(c), g.smooth(c), g.positive(c)},
	}
	if g.opset >= 14 && g.coin() {
		tr.attrs["training_mode"], tr.attrs["momentum"], tr.attrs["epsilon"] = 1, 0.7, 0.5 // few elements have small deviations
		if g.coin() {
			tr.attrs["momentum"] = 0.0
		}
		tr.outputs = 3
		tr.loss = [][]int{{0}, {0, 1, 2}, {1}}[g.IntN(3)]
	}
	return tr
}
