package grad

import "github.com/noether-ml/noether/onnx"

// y = x: dx = dy
func identity(op *operation) onnx.Value { return op.dy(0) }

// y = x cast to another type, for CastLike that of the second input: dx = dy cast to the type of x
func cast(op *operation) onnx.Value { return op.Cast(op.dy(0), op.elementType(op.x(0))) }

// y = x reshaped: dx = dy reshaped to the shape of x
func reshape(op *operation) onnx.Value { return op.reshapeLike(op.dy(0), op.x(0)) }

// dropout is the identity unless training_mode is set. Then y = x m / (1 - ratio), and so dx = dy m
// / (1 - ratio), where the operator's second output is the mask m. A training_mode that is known
// only when the graph runs selects the scale then.
func dropout(op *operation) onnx.Value {
	mode, modeKnown := op.info.Values(string(op.x(2)))
	ratio, ratioKnown := op.info.Values(string(op.x(1)))
	if op.x(2) == "" || modeKnown && mode[0] == 0 || ratioKnown && ratio[0] == 0 {
		return op.dy(0)
	}
	rate := op.num(0.5) // the operator's default
	if op.x(1) != "" {
		rate = op.Cast(op.x(1), op.elementType(op.y(0)))
	}
	scale := op.Where(op.x(2), op.Sub(op.num(1), rate), op.num(1))
	return op.Where(op.AddOutput(op.y(0), 1), op.Div(op.dy(0), scale), op.num(0))
}
