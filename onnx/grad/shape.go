package grad

import "github.com/noether-ml/noether/onnx"

// y = x: dx = dy
func identity(op *operation) onnx.Value { return op.dy(0) }

// y = x cast to another type, for CastLike that of the second input: dx = dy cast to the type of x
func cast(op *operation) onnx.Value { return op.Cast(op.dy(0), op.elementType(op.x(0))) }

// y = x reshaped: dx = dy reshaped to the shape of x
func reshape(op *operation) onnx.Value { return op.reshapeLike(op.dy(0), op.x(0)) }

// dropout is the identity without training_mode; else y = x m / (1 - ratio) with mask m, the second
// output, so dx = dy m / (1 - ratio). A computed training_mode selects the scale.
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
