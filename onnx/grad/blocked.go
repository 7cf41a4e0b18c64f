package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// Between convolutions with constant kernels ONNX Runtime keeps feature maps in a blocked layout
// (NCHWc), with blocks of channels innermost. A sum, product, normalisation or activation whose
// inputs are all blocked stays blocked. Any other operator has its input reordered to NCHW, and the
// next convolution has it reordered back. Gradients are therefore written so that they stay
// blocked. The values are the same.
//

// blockSize is the number of channels in a block. On older CPUs it is 8, which divides 16.
const blockSize = 16

// blockable reports whether a tensor of the graph that the tape differentiates can be in the
// blocked layout.
func (t *tape) blockable(v onnx.Value) bool {
	shape := t.info.Shape(string(v))
	return len(shape) == 4 && shape[1] > 0 && shape[1]%blockSize == 0 && t.info.Type(string(v)) == onnx.Float
}

// maxToConv is the largest number of normalisations and sums that outputBlocked follows back from a
// node to a convolution.
const maxToConv = 3

// outputBlocked reports whether the output of op, a node that is differentiated, is likely to be
// blocked: its input is the result of a convolution with constant kernels, or of a normalisation or
// sum that does not follow a convolution with variable kernels. After variable kernels, as in
// training, tensors are in NCHW.
func (op *operation) outputBlocked() bool {
	if !op.blockable(op.y(0)) || op.Opset() < 11 {
		return false
	}
	for v, steps := op.x(0), 0; steps <= maxToConv; steps++ {
		producer := op.producers[v]
		switch {
		case producer == nil:
			return steps > 0
		case producer.GetOpType() == "Conv":
			return len(producer.Input) > 1 && op.info.Constant(producer.Input[1])
		case !slices.Contains([]string{"BatchNormalization", "Add", "Sum"}, producer.GetOpType()) || len(producer.Input) == 0:
			return steps > 0
		}
		v = onnx.Value(producer.Input[0])
		for _, x := range producer.Input[1:] { // other terms of a sum
			if kind := op.producers[onnx.Value(x)].GetOpType(); kind == "Conv" || kind == "BatchNormalization" {
				v = onnx.Value(x)
			}
		}
	}
	return true
}

// blockedMask is 1 where the node's output y is above 0, and 0 elsewhere. A comparison would leave
// the blocked layout; HardSigmoid, max(0, min(1, alpha y)), does not. alpha is so large
// that alpha y >= 1 for every positive normal float32, the smallest of which is 1.2e-38.
func (op *operation) blockedMask() onnx.Value {
	return op.Op("HardSigmoid", onnx.Attrs{"alpha": 1e38, "beta": 0.0}, op.y(0))
}

// markBlocked records that g is blocked, if all tensors that it is computed from are, and returns
// g.
func (t *tape) markBlocked(g onnx.Value, from ...onnx.Value) onnx.Value {
	if !slices.ContainsFunc(from, func(v onnx.Value) bool { return !t.blocked[v] }) {
		t.blocked[g] = true
	}
	return g
}

// toBlocked converts g, a gradient of v, to the blocked layout by a 1 x 1 convolution of each
// channel with the weight 1. A gradient that is blocked, or cannot be, it returns unchanged.
func (t *tape) toBlocked(g, v onnx.Value) onnx.Value {
	if t.blocked[g] || !t.blockable(v) {
		return g
	}
	channels := t.info.Shape(string(v))[1]
	return t.markBlocked(t.b.Conv(g, t.b.Full(1, channels, 1, 1, 1), "", onnx.Attrs{"group": channels}))
}

// toSameLayout converts a and b, terms of the gradient of v, to the blocked layout if one of them
// is blocked and the other is not.
func (t *tape) toSameLayout(v, a, b onnx.Value) (onnx.Value, onnx.Value) {
	if t.blocked[a] != t.blocked[b] {
		return t.toBlocked(a, v), t.toBlocked(b, v)
	}
	return a, b
}
