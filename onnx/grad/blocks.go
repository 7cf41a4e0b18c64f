package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// Between convolutions with constant kernels ONNX Runtime keeps feature maps in blocks of channels,
// and goes on in blocks through a sum, a product, a normalisation or an activation all of whose
// inputs are in blocks. Any other operator has its input put into the usual order, and the next
// convolution has it put back. A gradient is therefore written so that it stays in blocks; what is
// computed is the same.

// block is how many channels are kept side by side; it is 8 on older machines.
const block = 16

// fits reports whether a tensor of the graph can be in blocks.
func (t *tape) fits(v onnx.Value) bool {
	shape := t.info.Shape(string(v))
	return len(shape) == 4 && shape[1] > 0 && shape[1]%block == 0 && t.info.Type(string(v)) == onnx.Float
}

// blocked reports whether the node's output is likely to be a feature map in blocks of channels:
// made by a convolution, perhaps with a normalisation or a sum after it. Kernels that change, as in
// training, keep it in the usual order.
func (c *vjp) blocked() bool {
	if !c.fits(c.y(0)) || c.Opset() < 11 {
		return false
	}
	for v, steps := c.x(0), 0; steps < 4; steps++ {
		maker := c.makers[v]
		switch {
		case maker == nil:
			return steps > 0
		case maker.GetOpType() == "Conv":
			return len(maker.Input) > 1 && c.info.Constant(maker.Input[1])
		case !slices.Contains([]string{"BatchNormalization", "Add", "Sum"}, maker.GetOpType()) || len(maker.Input) == 0:
			return steps > 0
		}
		v = onnx.Value(maker.Input[0])
		for _, x := range maker.Input[1:] { // of a sum
			if op := c.makers[onnx.Value(x)].GetOpType(); op == "Conv" || op == "BatchNormalization" {
				v = onnx.Value(x)
			}
		}
	}
	return true
}

// blockedMask is 1 where the output is positive and else 0, by an operator that is computed in
// blocks, which a comparison is not: max(0, min(1, y h)) with a number h so large that no positive
// float32 in normal range times h is below 1.
func (c *vjp) blockedMask() onnx.Value {
	const huge = 1e38 // the smallest is 1.2e-38
	return c.Op("HardSigmoid", onnx.Attrs{"alpha": huge, "beta": 0.0}, c.y(0))
}

// inBlocks notes that a gradient is in blocks, if those that it is made of are.
func (t *tape) inBlocks(g onnx.Value, of ...onnx.Value) onnx.Value {
	if !slices.ContainsFunc(of, func(v onnx.Value) bool { return !t.blockwise[v] }) {
		t.blockwise[g] = true
	}
	return g
}

// toBlocks puts a gradient of v into blocks by a convolution that changes nothing.
func (t *tape) toBlocks(g, v onnx.Value) onnx.Value {
	if t.blockwise[g] || !t.fits(v) {
		return g
	}
	channels := t.info.Shape(string(v))[1]
	return t.inBlocks(t.b.Conv(g, t.b.Full(1, channels, 1, 1, 1), "", onnx.Attrs{"group": channels}))
}

// together puts the other one of two terms of the gradient of v into blocks, where one is.
func (t *tape) together(v, a, b onnx.Value) (onnx.Value, onnx.Value) {
	if t.blockwise[a] != t.blockwise[b] {
		return t.toBlocks(a, v), t.toBlocks(b, v)
	}
	return a, b
}
