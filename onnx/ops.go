package onnx

import "maps"

// The methods below add common nodes in the form of the graph's opset; they exist from MinOpset on
// unless the comment says otherwise.

// Add returns x + y, broadcast.
func (b *Builder) Add(x, y Value) Value { return b.Op("Add", nil, x, y) }

// Sub returns x - y, broadcast.
func (b *Builder) Sub(x, y Value) Value { return b.Op("Sub", nil, x, y) }

// Mul returns x y element by element, broadcast.
func (b *Builder) Mul(x, y Value) Value { return b.Op("Mul", nil, x, y) }

// Div returns x / y element by element, broadcast.
func (b *Builder) Div(x, y Value) Value { return b.Op("Div", nil, x, y) }

// Pow returns x to the power y element by element, broadcast.
func (b *Builder) Pow(x, y Value) Value { return b.Op("Pow", nil, x, y) }

// Neg returns -x.
func (b *Builder) Neg(x Value) Value { return b.Op("Neg", nil, x) }

// Exp returns e to the power x.
func (b *Builder) Exp(x Value) Value { return b.Op("Exp", nil, x) }

// Log returns the natural logarithm.
func (b *Builder) Log(x Value) Value { return b.Op("Log", nil, x) }

// Sqrt returns the square root.
func (b *Builder) Sqrt(x Value) Value { return b.Op("Sqrt", nil, x) }

// Abs returns |x|.
func (b *Builder) Abs(x Value) Value { return b.Op("Abs", nil, x) }

// Sign returns -1, 0 or 1. It needs opset 9.
func (b *Builder) Sign(x Value) Value { return b.Op("Sign", nil, x) }

// Relu returns max(x, 0).
func (b *Builder) Relu(x Value) Value { return b.Op("Relu", nil, x) }

// Sigmoid returns 1 / (1 + exp(-x)).
func (b *Builder) Sigmoid(x Value) Value { return b.Op("Sigmoid", nil, x) }

// Tanh returns the hyperbolic tangent.
func (b *Builder) Tanh(x Value) Value { return b.Op("Tanh", nil, x) }

// Softmax normalises exp(x) along an axis. Before opset 13 axis must be the last axis.
func (b *Builder) Softmax(x Value, axis int) Value { return b.Op("Softmax", Attrs{"axis": axis}, x) }

// LogSoftmax returns the logarithm of Softmax. Before opset 13 axis must be the last axis.
func (b *Builder) LogSoftmax(x Value, axis int) Value {
	return b.Op("LogSoftmax", Attrs{"axis": axis}, x)
}

// MatMul returns the matrix product over the last two axes; the other axes are broadcast.
func (b *Builder) MatMul(x, y Value) Value { return b.Op("MatMul", nil, x, y) }

// Gemm returns x y + c for matrices; c may be empty. attrs may hold transA, transB, alpha and beta.
func (b *Builder) Gemm(x, y, c Value, attrs Attrs) Value {
	switch {
	case c != "":
		return b.Op("Gemm", attrs, x, y, c)
	case b.opset < 11: // where c was not optional
		return b.Op("Gemm", attrs, x, y, b.Scalar(0))
	}
	return b.Op("Gemm", attrs, x, y)
}

// Conv returns the convolution of x (b x c x spatial axes) with w (out x c / group x kernel). bias
// may be empty; attrs may hold strides, pads (beginnings, then ends), dilations and group.
func (b *Builder) Conv(x, w, bias Value, attrs Attrs) Value {
	if bias == "" {
		return b.Op("Conv", attrs, x, w)
	}
	return b.Op("Conv", attrs, x, w, bias)
}

// Clip returns x limited to [low, high]; either bound may be empty. It needs opset 11.
func (b *Builder) Clip(x, low, high Value) Value { return b.Op("Clip", nil, x, low, high) }

// Where returns x where the condition holds and y elsewhere, broadcast. It needs opset 9.
func (b *Builder) Where(condition, x, y Value) Value { return b.Op("Where", nil, condition, x, y) }

// Cast returns x with another element type.
func (b *Builder) Cast(x Value, to Type) Value { return b.Op("Cast", Attrs{"to": to}, x) }

// Identity returns a copy of x.
func (b *Builder) Identity(x Value) Value { return b.Op("Identity", nil, x) }

// Shape returns the shape of x, int64 of rank 1.
func (b *Builder) Shape(x Value) Value { return b.Op("Shape", nil, x) }

// Reshape returns x with a fixed shape; 0 keeps a dimension of x, and one -1 is the rest.
func (b *Builder) Reshape(x Value, shape ...int) Value {
	return b.Op("Reshape", nil, x, b.Ints(shape...))
}

// ReshapeTo returns x with a shape that is a tensor: int64 of rank 1.
func (b *Builder) ReshapeTo(x, shape Value) Value { return b.Op("Reshape", nil, x, shape) }

// Expand returns x broadcast to a shape that is a tensor: int64 of rank 1. It needs opset 8.
func (b *Builder) Expand(x, shape Value) Value { return b.Op("Expand", nil, x, shape) }

// Flatten returns x as a matrix: the axes before axis become its rows, the others its columns.
func (b *Builder) Flatten(x Value, axis int) Value { return b.Op("Flatten", Attrs{"axis": axis}, x) }

// Transpose returns x with permuted axes: axis i of the result is axis perm[i] of x.
func (b *Builder) Transpose(x Value, perm ...int) Value {
	return b.Op("Transpose", Attrs{"perm": perm}, x)
}

// Concat returns tensors concatenated along an axis.
func (b *Builder) Concat(axis int, values ...Value) Value {
	return b.Op("Concat", Attrs{"axis": axis}, values...)
}

// Gather returns the slices of x along an axis at indices (int64, of any rank).
func (b *Builder) Gather(x, indices Value, axis int) Value {
	return b.Op("Gather", Attrs{"axis": axis}, x, indices)
}

// Slice returns x from start to end (exclusive) along an axis; negative positions count from the
// end.
func (b *Builder) Slice(x Value, axis, start, end, step int) Value {
	if b.opset < 10 {
		if step != 1 {
			b.Fail("Slice of %q: a step needs opset 10, and the graph uses %d", x, b.opset)
		}
		return b.Op("Slice", Attrs{"axes": []int{axis}, "starts": []int{start}, "ends": []int{end}}, x)
	}
	return b.Op("Slice", nil, x, b.Ints(start), b.Ints(end), b.Ints(axis), b.Ints(step))
}

// Squeeze returns x without the given axes, which have size 1.
func (b *Builder) Squeeze(x Value, axes ...int) Value {
	return b.withAxes("Squeeze", 13, nil, x, axes)
}

// Unsqueeze returns x with axes of size 1 inserted at the given positions of the result.
func (b *Builder) Unsqueeze(x Value, axes ...int) Value {
	return b.withAxes("Unsqueeze", 13, nil, x, axes)
}

// ReduceSum returns sums over axes (none: all), which stay with size 1 if keep is set.
func (b *Builder) ReduceSum(x Value, keep bool, axes ...int) Value {
	return b.withAxes("ReduceSum", 13, Attrs{"keepdims": keep}, x, axes)
}

// ReduceMean returns means over axes (none: all), which stay with size 1 if keep is set.
func (b *Builder) ReduceMean(x Value, keep bool, axes ...int) Value {
	return b.withAxes("ReduceMean", 18, Attrs{"keepdims": keep}, x, axes)
}

// ReduceMax returns maxima over axes (none: all), which stay with size 1 if keep is set.
func (b *Builder) ReduceMax(x Value, keep bool, axes ...int) Value {
	return b.withAxes("ReduceMax", 18, Attrs{"keepdims": keep}, x, axes)
}

// Reduce adds another operator that reduces axes, such as ReduceL1, as ReduceSum does.
func (b *Builder) Reduce(op string, x Value, keep bool, axes ...int) Value {
	return b.withAxes(op, 18, Attrs{"keepdims": keep}, x, axes)
}

// withAxes adds an operator whose axes (none: all) are an input from opset since on, else an
// attribute.
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
