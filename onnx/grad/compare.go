package grad

import "github.com/noether-ml/noether/onnx"

// zeroUnless is g where the condition holds, else 0, even for infinite g (but see choose).
func (op *operation) zeroUnless(condition, g onnx.Value) onnx.Value {
	return op.choose(condition, g, op.num(0))
}

// choose is a where the condition holds and b elsewhere, broadcast. Before opset 9, without Where,
// values not chosen must be finite.
func (op *operation) choose(condition, a, b onnx.Value) onnx.Value {
	if op.Opset() >= 9 {
		return op.Where(condition, a, b)
	}
	mask := op.mask(condition)
	return op.Add(op.Mul(mask, a), op.Mul(op.Sub(op.num(1), mask), b))
}

// mask is 1 where the condition holds, else 0, of the first output's type.
func (op *operation) mask(condition onnx.Value) onnx.Value {
	return op.Cast(condition, op.elementType(op.firstOutput()))
}

// num is a constant of rank 0, of the type of the first output of that node.
func (op *operation) num(v float64) onnx.Value { return op.scalarLike(v, op.firstOutput()) }

func (op *operation) greater(a, b onnx.Value) onnx.Value { return op.Op("Greater", nil, a, b) }

func (op *operation) less(a, b onnx.Value) onnx.Value { return op.Op("Less", nil, a, b) }

func (op *operation) and(a, b onnx.Value) onnx.Value { return op.Op("And", nil, a, b) }

func (op *operation) or(a, b onnx.Value) onnx.Value { return op.Op("Or", nil, a, b) }

func (op *operation) not(a onnx.Value) onnx.Value { return op.Op("Not", nil, a) }

// equal compares floating-point numbers, which the operator Equal accepts since opset 11.
func (op *operation) equal(a, b onnx.Value) onnx.Value {
	if op.Opset() >= 11 {
		return op.equalInts(a, b)
	}
	return op.not(op.or(op.greater(a, b), op.less(a, b)))
}

func (op *operation) equalInts(a, b onnx.Value) onnx.Value { return op.Op("Equal", nil, a, b) }

// sign is -1, 0 or 1. The operator Sign came with opset 9.
func (op *operation) sign(x onnx.Value) onnx.Value {
	if op.Opset() >= 9 {
		return op.Sign(x)
	}
	return op.Sub(op.mask(op.greater(x, op.num(0))), op.mask(op.less(x, op.num(0))))
}

func (op *operation) square(x onnx.Value) onnx.Value { return op.Mul(x, x) }

func (op *operation) times(x onnx.Value, v float64) onnx.Value {
	if v == 1 {
		return x
	}
	return op.Mul(x, op.num(v))
}
