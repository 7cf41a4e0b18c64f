//go:build cgo

package grad_test

import (
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// poolCases draws random cases of pooling operators, for the oldest ONNX operator set that is
// supported, 7, and those in which they changed. The methods of generator that return operands,
// such as smooth and distinct, say which values they draw: an operator gets values at which its
// derivative does not jump. trial is the index of the case. The loss of a case, a weighted sum,
// reads the outputs that the field loss lists.
var poolCases = []opCase{
	{"MaxPool", []int{7, 8, 10, 11, 12, 22}, drawMaxPool},
	{"AveragePool", []int{7, 10, 11, 19, 22}, drawAveragePool},
	{"LpPool", []int{7, 11, 18, 22}, drawLpPool},
	{"Col2Im", []int{18, 22}, drawCol2Im},
	{"GlobalAveragePool", []int{7, 22}, func(g *generator) testCase { return unary(g.smooth(g.dims(g.between(3, 5), 1, 4)...), nil) }},
	{"GlobalMaxPool", []int{7, 22}, func(g *generator) testCase { return unary(g.distinct(g.dims(g.between(3, 5), 1, 4)...), nil) }},
	{"GlobalLpPool", []int{7}, func(g *generator) testCase {
		return unary(g.positive(g.dims(g.between(3, 5), 1, 4)...), g.optionalAttr("p", g.between(1, 3)))
	}},
}

// pool draws a shape and the attributes of a pooling operator. It has the attributes dilations and
// ceil_mode from the operator sets dilationsSince and ceilSince on.
func (g *generator) pool(dilationsSince, ceilSince int) (shape []int, attrs onnx.Attrs) {
	n := []int{2, 2, 1, 2, 3}[g.trial%5] // number of axes of the window
	kernel := g.dims(n, 1, 3)
	// span holds the sizes of the window, dilations included.
	attrs, span := g.window(kernel, g.opset >= dilationsSince)
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
	if g.opset >= ceilSince && attrs["auto_pad"] == nil && g.coin() {
		attrs["ceil_mode"] = 1
	}
	shape = g.dims(2, 1, 2)
	for i := range n {
		shape = append(shape, span[i]+g.between(0, 5))
		if strides, ok := attrs["strides"].([]int); ok && attrs["auto_pad"] != nil {
			strides[i] = min(strides[i], kernel[i]) // else ONNX Runtime computes a negative padding
		}
	}
	return shape, attrs
}

// drawCol2Im draws columns and the image that their windows are added to. Dilated blocks are of two
// axes, for which alone ONNX Runtime 1.32 computes what the standard says.
func drawCol2Im(g *generator) testCase {
	n := []int{2, 1, 2, 3}[g.trial%4] // number of axes of the image
	block := g.dims(n, 1, 3)
	attrs, span := g.window(block, n == 2)
	if g.coin() {
		pads := make([]int, 2*n)
		for i := range pads {
			pads[i] = g.IntN(block[i%n])
		}
		attrs["pads"] = pads
	}
	image, windows := make([]int, n), 1
	for i := range n {
		image[i] = span[i] + g.between(0, 4)
		padded := image[i]
		if pads, ok := attrs["pads"].([]int); ok {
			padded += pads[i] + pads[n+i]
		}
		windows *= (padded-span[i])/stride(attrs, i) + 1
	}
	columns := g.smooth(g.between(1, 2), g.between(1, 2)*tensor.Size(block), windows)
	return testCase{attrs: attrs, operands: []operand{columns, int64Vector(image...), int64Vector(block...).asConstant()}}
}

func drawMaxPool(g *generator) testCase {
	shape, attrs := g.pool(10, 10)
	tc := unary(g.distinct(shape...), attrs)
	tc.onlyBatchAndSpaceFree = true // the graph always declares the number of channels
	if g.opset >= 8 && g.IntN(3) == 0 {
		tc.outputs, tc.loss = 2, []int{0} // the second output, Indices, has no gradient
		attrs["storage_order"] = g.IntN(2)
	}
	return tc
}

func drawAveragePool(g *generator) testCase {
	shape, attrs := g.pool(19, 10)
	if g.coin() {
		attrs["count_include_pad"] = 1
	}
	tc := unary(g.smooth(shape...), attrs)
	tc.onlyBatchAndSpaceFree = true
	return tc
}

func drawLpPool(g *generator) testCase {
	shape, attrs := g.pool(18, 18)
	if g.coin() {
		attrs["p"] = g.between(1, 3)
	}
	tc := unary(g.positive(shape...), attrs)
	tc.onlyBatchAndSpaceFree = true
	return tc
}

var normCases = []opCase{
	{"BatchNormalization", []int{7, 9, 14, 15}, drawBatchNorm},
	{"InstanceNormalization", []int{7, 22}, func(g *generator) testCase {
		shape, attrs := append(g.dims(2, 1, 3), g.dims(g.between(2, 3), 3, 4)...), onnx.Attrs(nil)
		// With few elements the standard deviation may be small and the curvature large.
		if g.coin() {
			shape, attrs = append(g.dims(2, 1, 3), g.dims(g.between(1, 3), 2, 4)...), onnx.Attrs{"epsilon": 0.5}
		}
		return testCase{operands: []operand{g.smooth(shape...), g.smooth(shape[1]), g.smooth(shape[1])}, attrs: attrs}
	}},
	{"GroupNormalization", []int{18, 21}, func(g *generator) testCase {
		groups, channels := g.between(1, 3), g.between(1, 3) // channels of each group
		shape := append([]int{g.between(1, 2), groups * channels}, g.dims(g.between(1, 3), 2, 3)...)
		// Scales and biases: one for each group; one for each channel from operator set 21 on.
		n := groups
		if g.opset >= 21 {
			n *= channels
		}
		return testCase{operands: []operand{g.smooth(shape...), g.smooth(n), g.smooth(n)}, attrs: onnx.Attrs{"num_groups": groups, "epsilon": 0.01}}
	}},
	{"LayerNormalization", []int{17}, func(g *generator) testCase {
		shape := g.dims(g.between(2, 4), 2, 4)
		axis := g.between(0, len(shape)-1)
		tc := testCase{operands: []operand{g.smooth(shape...), g.smooth(shape[axis:]...)}, attrs: onnx.Attrs{"axis": g.maybeNegative(axis, len(shape)), "epsilon": 0.01}}
		if g.coin() {
			tc.operands = append(tc.operands, g.smooth(shape[axis:]...))
		}
		if g.IntN(3) == 0 {
			tc.outputs, tc.loss = 3, []int{0}
		}
		return tc
	}},
	{"LpNormalization", []int{7, 22}, func(g *generator) testCase {
		shape := g.dims(g.between(1, 4), 2, 4)
		attrs := onnx.Attrs{"p": g.between(1, 2)}
		if g.coin() {
			attrs["axis"] = g.maybeNegative(g.IntN(len(shape)), len(shape))
		}
		return unary(g.nonzero(shape...), attrs)
	}},
	{"LRN", []int{7, 13}, func(g *generator) testCase {
		attrs := onnx.Attrs{"size": 2*g.between(0, 2) + 1}
		if g.coin() {
			attrs["alpha"], attrs["beta"], attrs["bias"] = 0.3, 0.6, 2.0
		}
		return unary(g.smooth(g.between(1, 2), g.between(1, 6), g.between(1, 3), g.between(1, 3)), attrs)
	}},
	{"Softmax", []int{7, 11, 13}, drawSoftmax},
	{"LogSoftmax", []int{7, 11, 13}, drawSoftmax},
}

func drawSoftmax(g *generator) testCase {
	shape := g.smallShape()
	attrs := g.optionalAttr("axis", g.maybeNegative(g.IntN(len(shape)), len(shape)))
	if len(shape) == 1 && g.opset < 13 {
		attrs = onnx.Attrs{"axis": 0} // the default is 1
	}
	return unary(g.smooth(shape...), attrs)
}

func drawBatchNorm(g *generator) testCase {
	shape := append([]int{g.between(2, 3), g.between(1, 3)}, g.dims(g.between(0, 3), 2, 3)...)
	c := shape[1]
	tc := testCase{
		attrs:    onnx.Attrs{"epsilon": 0.01},
		operands: []operand{g.smooth(shape...), g.smooth(c), g.smooth(c), g.smooth(c), g.positive(c)},
	}
	if g.opset >= 14 && g.coin() {
		// With few elements the standard deviation may be small.
		tc.attrs["training_mode"], tc.attrs["momentum"], tc.attrs["epsilon"] = 1, 0.7, 0.5
		if g.coin() {
			tc.attrs["momentum"] = 0.0
		}
		tc.outputs = 3
		tc.loss = [][]int{{0}, {0, 1, 2}, {1}}[g.IntN(3)]
	}
	return tc
}
