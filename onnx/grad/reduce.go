package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// A reduction is a node that reduces axes of data; dy keeps them with size 1, to broadcast.
type reduction struct {
	*operation
	data, dy onnx.Value
	// empty: no axis is reduced, and only the operator's function, such as |x|, is applied.
	axes []int
	// The axes, if they are known only when the graph runs; then the node keeps them.
	axesValue onnx.Value
	// all axes of data, whose rank is unknown, are reduced; the node keeps none.
	all bool
}

func (r reduction) reducesNothing() bool { return len(r.axes) == 0 && r.axesValue == "" && !r.all }

// sum sums over the reduced axes and keeps them with size 1.
func (r reduction) sum(x onnx.Value) onnx.Value { return r.reduce("ReduceSum", x) }

// reduce keeps the axes with size 1; with r.all it gives a scalar.
func (r reduction) reduce(operator string, x onnx.Value) onnx.Value {
	switch {
	case r.axesValue != "":
		return r.Op(operator, onnx.Attrs{"keepdims": 1, "noop_with_empty_axes": r.attr("noop_with_empty_axes", 0)}, x, r.axesValue)
	case r.all:
		return r.Op(operator, onnx.Attrs{"keepdims": 0}, x)
	case r.reducesNothing():
		return x
	case operator == "ReduceSum":
		return r.ReduceSum(x, true, r.axes...)
	case r.Opset() >= 18:
		return r.Op(operator, onnx.Attrs{"keepdims": 1}, x, r.Ints(r.axes...))
	}
	return r.Op(operator, onnx.Attrs{"keepdims": 1, "axes": r.axes}, x)
}

// reducing is the rule of a reduction whose gradient f has the shape of data.
func reducing(f func(r reduction) onnx.Value) rule {
	return unary(func(op *operation) onnx.Value { return f(op.reduction()) })
}

// expanding is the rule of a reduction whose gradient elements share: f returns it with axes of
// size 1, expanded later where possible.
func expanding(f func(r reduction) onnx.Value) rule {
	return func(op *operation) {
		if !op.wanted(0) {
			return
		}
		r := op.reduction()
		switch {
		case r.reducesNothing():
			op.accumulate(0, func() onnx.Value { return f(r) })
		case r.all:
			op.accumulate(0, func() onnx.Value { return op.expandLike(f(r), r.data) })
		default:
			// Whether the channel axis has its full size already.
			keepsChannels := r.axesValue == "" && !slices.Contains(r.axes, 1)
			op.accumulateUnexpanded(0, keepsChannels, func() onnx.Value { return f(r) })
		}
	}
}

func (op *operation) reduction() reduction {
	r := reduction{operation: op, data: op.x(0), dy: op.dy(0)}
	axes, known := op.attrOrInput("axes", 1)
	keep, allAxes := op.attr("keepdims", 1) != 0, len(axes) == 0 && op.attr("noop_with_empty_axes", 0) == 0
	if known && allAxes && !keep && op.shape(r.data) == nil && op.Opset() >= 8 {
		r.all = true
		return r
	}
	rank := op.rank(r.data)
	switch {
	case known && allAxes:
		r.axes = upTo(rank)
	case known:
		r.axes = slices.Sorted(slices.Values(normalizeAxes(axes, rank)))
	case keep:
		r.axesValue = op.x(1)
	default:
		op.fail("its axes are not known before the graph runs, and it does not keep them")
	}
	r.dy = r.withAxes(r.dy)
	return r
}

// withAxes inserts the removed axes, of size 1.
func (r reduction) withAxes(v onnx.Value) onnx.Value {
	if r.attr("keepdims", 1) == 0 && len(r.axes) > 0 {
		return r.Unsqueeze(v, r.axes...)
	}
	return v
}

// y is the node's output with the axes that the node has removed, of size 1.
func (r reduction) y() onnx.Value { return r.withAxes(r.operation.y(0)) }

// In the following formulas x is data, over the elements that are reduced to one output y.

// y = sum(x): dx = dy
func sumGradient(r reduction) onnx.Value { return r.dy }

// y = sum(x) / n: dx = dy / n. If the shape is not known, n is computed when the graph runs.
func meanGradient(r reduction) onnx.Value {
	n, known := 1, r.axesValue == "" && !r.all
	for _, a := range r.axes {
		d := r.shape(r.data)[a]
		n, known = n*d, known && d > 0
	}
	if !known {
		return r.Div(r.dy, r.sum(r.filled(1, r.data)))
	}
	return r.times(r.dy, 1/float64(n))
}

// y = max(x) or min(x): dx = dy / (number of elements that equal y) where x = y, else 0
func extremeGradient(r reduction) onnx.Value {
	equalsY := r.mask(r.equal(r.data, r.y()))
	return r.Mul(equalsY, r.Div(r.dy, r.sum(equalsY)))
}

// y = product(x): dx = dy times the others' product, y / x without zeros; a single zero alone has a
// gradient.
func prodGradient(r reduction) onnx.Value {
	if r.reducesNothing() {
		return r.dy
	}
	isZero := r.equal(r.data, r.num(0))
	nonzero := r.choose(isZero, r.num(1), r.data)
	product := r.reduce("ReduceProd", nonzero)
	zeros := r.sum(r.mask(isZero))
	otherZeros := r.Sub(zeros, r.mask(isZero))
	g := r.Mul(r.dy, r.Div(product, nonzero))
	return r.Mul(g, r.mask(r.equal(otherZeros, r.num(0))))
}

// y = sum(|x|): dx = dy sign(x)
func l1Gradient(r reduction) onnx.Value { return r.Mul(r.sign(r.data), r.dy) }

// y = sqrt(sum(x^2)): dx = dy x / y, 0 for x = 0
func l2Gradient(r reduction) onnx.Value {
	norm := r.choose(r.equal(r.y(), r.num(0)), r.num(1), r.y())
	return r.Mul(r.data, r.Div(r.dy, norm))
}

// y = sum(x^2): dx = 2 dy x
func sumSquareGradient(r reduction) onnx.Value { return r.Mul(r.data, r.times(r.dy, 2)) }

// y = ln(sum(x)): dx = dy / sum(x) = dy exp(-y)
func logSumGradient(r reduction) onnx.Value { return r.Mul(r.dy, r.Exp(r.Neg(r.y()))) }

// y = ln(sum(exp(x))): dx = dy exp(x - y)
func logSumExpGradient(r reduction) onnx.Value { return r.Mul(r.Exp(r.Sub(r.data, r.y())), r.dy) }
