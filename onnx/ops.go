package onnx

import "maps"

// The methods below add the nodes that graphs need most, in the form that the graph's operator set
// has for them.

// Add is x + y, broadcast.
func (b *Builder) Add(x, y Value) Value { return b.Op("Add", nil, x, y) }

// Sub is x - y, broadcast.
func (b *Builder) Sub(x, y Value) Value { return b.Op("Sub", nil, x, y) }

// Mul is x y element by element, broadcast.
func (b *Builder) Mul(x, y Value) Value { return b.Op("Mul", nil, x, y) }

// Div is x / y element by element, broadcast.
func (b *Builder) Div(x, y Value) Value { return b.Op("Div", nil, x, y) }

// Pow is x to the power y element by element, broadcast.
func (b *Builder) Pow(x, y Value) Value { return b.Op("Pow", nil, x, y) }

// Neg is -x.
func (b *Builder) Neg(x Value) Value { return b.Op("Neg", nil, x) }

// Exp is e to the power x.
func (b *Builder) Exp(x Value) Value { return b.Op("Exp", nil, x) }

// Log is the natural logarithm.
func (b *Builder) Log(x Value) Value { return b.Op("Log", nil, x) }

// Sqrt is the square root.
func (b *Builder) Sqrt(x Value) Value { return b.Op("Sqrt", nil, x) }

// Abs is |x|.
func (b *Builder) Abs(x Value) Value { return b.Op("Abs", nil, x) }

// Sign is -1, 0 or 1.
func (b *Builder) Sign(x Value) Value { return b.Op("Sign", nil, x) }

// Relu is max(x, 0).
func (b *Builder) Relu(x Value) Value { return b.Op("Relu", nil, x) }

// Sigmoid is 1 / (1 + exp(-x)).
func (b *Builder) Sigmoid(x Value) Value { return b.Op("Sigmoid", nil, x) }

// Tanh is the hyperbolic tangent.
func (b *Builder) Tanh(x Value) Value { return b.Op("Tanh", nil, x) }

// Softmax normalises exp(x) along an axis. Below opset 13 the operator means something else for an
// axis that is not the last, so it must be the last there.
func (b *Builder) Softmax(x Value, axis int) Value { return b.Op("Softmax", Attrs{"axis": axis}, x) }

// LogSoftmax is the logarithm of Softmax; the same holds below opset 13.
func (b *Builder) LogSoftmax(x Value, axis int) Value {
	return b.Op("LogSoftmax", Attrs{"axis": axis}, x)
}

// MatMul is the matrix product over the last two axes; those before are broadcast.
func (b *Builder) MatMul(x, y Value) Value { return b.Op("MatMul", nil, x, y) }

// Gemm is x y + c for matrices; c may be empty. attrs may hold transA, transB, alpha and beta.
func (b *Builder) Gemm(x, y, c Value, attrs Attrs) Value {
	switch {
	case c != "":
		return b.Op("Gemm", attrs, x, y, c)
	case b.opset < 11: // where it was not optional
		return b.Op("Gemm", attrs, x, y, b.Scalar(0))
	}
	return b.Op("Gemm", attrs, x, y)
}

// Conv convolves x (b x c x space) with w (out x c / group x kernel). bias may be empty; attrs may
// hold strides, pads (all beginnings, then all ends), dilations and group.
func (b *Builder) Conv(x, w, bias Value, attrs Attrs) Value {
	if bias == "" {
		return b.Op("Conv", attrs, x, w)
	}
	return b.Op("Conv", attrs, x, w, bias)
}

// Clip limits x to [low, high]; either may be empty.
func (b *Builder) Clip(x, low, high Value) Value { return b.Op("Clip", nil, x, low, high) }

// Where is x where the condition holds and y elsewhere, broadcast.
func (b *Builder) Where(condition, x, y Value) Value { return b.Op("Where", nil, condition, x, y) }

// Cast changes the element type.
func (b *Builder) Cast(x Value, to Type) Value { return b.Op("Cast", Attrs{"to": to}, x) }

// Identity gives a tensor a second name.
func (b *Builder) Identity(x Value) Value { return b.Op("Identity", nil, x) }

// Shape is the shape of x, int64 of rank 1.
func (b *Builder) Shape(x Value) Value { return b.Op("Shape", nil, x) }

// Reshape gives x a fixed shape, in which 0 keeps a dimension and one -1 is worked out.
func (b *Builder) Reshape(x Value, shape ...int) Value {
	return b.Op("Reshape", nil, x, b.Ints(shape...))
}

// ReshapeTo gives x a shape that is computed: int64 of rank 1.
func (b *Builder) ReshapeTo(x, shape Value) Value { return b.Op("Reshape", nil, x, shape) }

// Expand broadcasts x to a shape that is computed.
func (b *Builder) Expand(x, shape Value) Value { return b.Op("Expand", nil, x, shape) }

// Flatten makes a matrix of x: axes before axis become its rows, the others its columns.
func (b *Builder) Flatten(x Value, axis int) Value { return b.Op("Flatten", Attrs{"axis": axis}, x) }

// Transpose puts axis perm[i] of x at place i.
func (b *Builder) Transpose(x Value, perm ...int) Value {
	return b.Op("Transpose", Attrs{"perm": perm}, x)
}

// Concat joins tensors along an axis.
func (b *Builder) Concat(axis int, values ...Value) Value {
	return b.Op("Concat", Attrs{"axis": axis}, values...)
}

// Gather takes the slices of x along an axis at indices (int64, of any rank).
func (b *Builder) Gather(x, indices Value, axis int) Value {
	return b.Op("Gather", Attrs{"axis": axis}, x, indices)
}

// Slice takes x from start (inclusive) to end (exclusive) along one axis, by a step. Negative
// numbers count from the end.
func (b *Builder) Slice(x Value, axis, start, end, step int) Value {
	if b.opset < 10 {
		if step != 1 {
			b.Fail("Slice of %q: a step needs opset 10, and the graph uses %d", x, b.opset)
		}
		return b.Op("Slice", Attrs{"axes": []int{axis}, "starts": []int{start}, "ends": []int{end}}, x)
	}
	return b.Op("Slice", nil, x, b.Ints(start), b.Ints(end), b.Ints(axis), b.Ints(step))
}

// Squeeze removes axes of size 1.
func (b *Builder) Squeeze(x Value, axes ...int) Value {
	return b.withAxes("Squeeze", 13, nil, x, axes)
}

// Unsqueeze inserts axes of size 1, at these places of the result.
func (b *Builder) Unsqueeze(x Value, axes ...int) Value {
	return b.withAxes("Unsqueeze", 13, nil, x, axes)
}

// ReduceSum sums over axes, or over all if none is given; keep leaves them with size 1.
func (b *Builder) ReduceSum(x Value, keep bool, axes ...int) Value {
	return b.withAxes("ReduceSum", 13, Attrs{"keepdims": keep}, x, axes)
}

// ReduceMean averages over axes, or over all if none is given; keep leaves them with size 1.
func (b *Builder) ReduceMean(x Value, keep bool, axes ...int) Value {
	return b.withAxes("ReduceMean", 18, Attrs{"keepdims": keep}, x, axes)
}

// ReduceMax is the largest value over axes, or over all if none is given; keep leaves them with
// size 1.
func (b *Builder) ReduceMax(x Value, keep bool, axes ...int) Value {
	return b.withAxes("ReduceMax", 18, Attrs{"keepdims": keep}, x, axes)
}

// withAxes adds an operator whose axes became an input with some operator set and were an attribute
// before.
func (b *Builder) withAxes(op string, since int, attrs Attrs, x Value, axes []int) Value {
	switch {
	case len(axes) == 0:
		return b.Op(op, attrs, x)
	case b.opset >= since:
		return b.Op(op, attrs, x, b.Ints(axes...))
	}
	old := Attrs{"axes": axes}
	maps.Copy(old, attrs)
	return b.Op(op, old, x)
}
