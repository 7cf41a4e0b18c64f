package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// Between convolutions with constant kernels ONNX Runtime keeps blocks of channels innermost
// (NCHWc). Sums, products, normalisations and activations keep it; others reorder to NCHW, and back
// for the next convolution. Gradients are written to stay blocked.
//

// blockSize is the number of channels in a block. On older CPUs it is 8, which divides 16.
const blockSize = 16

func (t *tape) blockable(v onnx.Value) bool {
	shape := t.info.Shape(string(v))
	return len(shape) == 4 && shape[1] > 0 && shape[1]%blockSize == 0 && t.info.Type(string(v)) == onnx.Float
}

// maxToConv bounds how far outputBlocked looks back for a convolution.
const maxToConv = 3

// outputBlocked: op's input is likely to come from a convolution with constant kernels, over
// normalisations or sums; after variable ones, as in training, tensors are in NCHW.
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
// the blocked layout; HardSigmoid, max(0, min(1, alpha y)), does not. alpha y >= 1 for every
// positive normal float32, from 1.2e-38 on.
func (op *operation) blockedMask() onnx.Value {
	return op.Op("HardSigmoid", onnx.Attrs{"alpha": 1e38, "beta": 0.0}, op.y(0))
}

// markBlocked records that g is blocked if all of from are, and returns it.
func (t *tape) markBlocked(g onnx.Value, from ...onnx.Value) onnx.Value {
	if !slices.ContainsFunc(from, func(v onnx.Value) bool { return !t.blocked[v] }) {
		t.blocked[g] = true
	}
	return g
}

// toBlocked converts g, a gradient of v, by a 1 x 1 convolution with weight 1, unless it is blocked
// or cannot be.
func (t *tape) toBlocked(g, v onnx.Value) onnx.Value {
	if t.blocked[g] || !t.blockable(v) {
		return g
	}
	channels := t.info.Shape(string(v))[1]
	return t.markBlocked(t.b.Conv(g, t.b.Full(1, channels, 1, 1, 1), "", onnx.Attrs{"group": channels}))
}

// toSameLayout blocks both terms of v's gradient if one is.
func (t *tape) toSameLayout(v, a, b onnx.Value) (onnx.Value, onnx.Value) {
	if t.blocked[a] != t.blocked[b] {
		return t.toBlocked(a, v), t.toBlocked(b, v)
	}
	return a, b
}
