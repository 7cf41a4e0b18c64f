package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// reducedAxes are the axes, counted from the front, over which a reducing node works, given the
// rank of its input.
func (c *vjp) reducedAxes(rank int) ([]int, bool) {
	axes, ok := c.listOr("axes", 1)
	if !ok {
		c.fail("its axes are not known before the graph runs, and it does not keep them")
		return nil, false
	}
	axes = slices.Clone(axes)
	for i := range axes {
		axes[i] = axis(axes[i], rank)
	}
	if len(axes) == 0 && c.attr("noop_with_empty_axes", 0) == 0 {
		axes = upTo(rank)
	}
	slices.Sort(axes)
	return axes, true
}

// A reduction is a node that reduces its input x to its output y, with both and dy as tensors that
// are broadcast to the shape of x.
type reduction struct {
	*vjp
	x, dy  onnx.Value
	axes   []int      // none: the node leaves x as it is, but for the function that the operator applies to the sum
	axesAt onnx.Value // in place of axes where they are known only when the graph runs; then the node keeps them
	all    bool       // in place of axes where not even their number is known: all, and the node keeps none
}

// whole reports whether the node reduces no axis.
func (r reduction) whole() bool { return len(r.axes) == 0 && r.axesAt == "" && !r.all }

// sum adds up over the axes of the reduction and keeps them.
func (r reduction) sum(x onnx.Value) onnx.Value { return r.reduced("ReduceSum", x) }

// reduced applies an operator over the axes of the reduction and keeps them.
func (r reduction) reduced(op string, x onnx.Value) onnx.Value {
	switch {
	case r.axesAt != "":
		return r.Op(op, onnx.Attrs{"keepdims": 1, "noop_with_empty_axes": r.attr("noop_with_empty_axes", 0)}, x, r.axesAt)
	case r.all:
		return r.Op(op, onnx.Attrs{"keepdims": 0}, x)
	case r.whole():
		return x
	case op == "ReduceSum":
		return r.ReduceSum(x, true, r.axes...)
	case r.Opset() >= 18:
		return r.Op(op, onnx.Attrs{"keepdims": 1}, x, r.Ints(r.axes...))
	}
	return r.Op(op, onnx.Attrs{"keepdims": 1, "axes": r.axes}, x)
}

// reducing is the rule of a reduction with a gradient of the shape of x.
func reducing(f func(r reduction) onnx.Value) rule {
	return func(c *vjp) {
		c.accumulate(0, func() onnx.Value {
			r, ok := c.reduction()
			if !ok {
				return ""
			}
			return f(r)
		})
	}
}

// repeating is the rule of a reduction of which all elements that are reduced share one gradient.
func repeating(f func(r reduction) onnx.Value) rule {
	return func(c *vjp) {
		if !c.wanted(0) {
			return
		}
		r, ok := c.reduction()
		switch {
		case !ok:
		case r.whole():
			c.accumulate(0, func() onnx.Value { return f(r) })
		case r.all:
			c.accumulate(0, func() onnx.Value { return c.expandLike(f(r), r.x) })
		default:
			c.accumulateRepeated(0, r.axesAt == "" && !slices.Contains(r.axes, 1), func() onnx.Value { return f(r) })
		}
	}
}

// reduction reads a node that reduces.
func (c *vjp) reduction() (reduction, bool) {
	r := reduction{vjp: c, x: c.x(0), dy: c.dy(0)}
	if c.reducesAll() && c.shape(r.x) == nil && c.Opset() >= 8 {
		r.all = true
		return r, true
	}
	rank, ok := c.rank(r.x)
	if !ok {
		return r, false
	}
	if _, known := c.listOr("axes", 1); !known && c.attr("keepdims", 1) != 0 {
		r.axesAt = c.x(1)
	} else if r.axes, ok = c.reducedAxes(rank); !ok {
		return r, false
	}
	r.dy = r.kept(r.dy)
	return r, true
}

// reducesAll reports whether a node that reduces makes a number of whatever it is given.
func (c *vjp) reducesAll() bool {
	axes, known := c.listOr("axes", 1)
	return known && len(axes) == 0 && c.attr("keepdims", 1) == 0 && c.attr("noop_with_empty_axes", 0) == 0
}

// kept gives a tensor of the output's shape the axes, of size 1, that the node has removed.
func (r reduction) kept(v onnx.Value) onnx.Value {
	if r.attr("keepdims", 1) == 0 && len(r.axes) > 0 {
		return r.Unsqueeze(v, r.axes...)
	}
	return v
}

// y is the node's output, likewise.
func (r reduction) y() onnx.Value { return r.kept(r.vjp.y(0)) }

func sumGradient(r reduction) onnx.Value { return r.dy }

// meanGradient: each element has its share. Where the shape is not fixed the count is that of the
// run.
func meanGradient(r reduction) onnx.Value {
	count, known := 1, r.axesAt == "" && !r.all
	for _, a := range r.axes {
		d := r.shape(r.x)[a]
		count, known = count*d, known && d > 0
	}
	if !known {
		return r.Div(r.dy, r.sum(r.filled(1, r.x)))
	}
	return r.times(r.dy, 1/float64(count))
}

// extremeGradient: the elements that attain the maximum, or the minimum, share its gradient evenly.
func extremeGradient(r reduction) onnx.Value {
	attains := r.mask(r.equal(r.x, r.y()))
	return r.Mul(attains, r.Div(r.dy, r.sum(attains)))
}

// prodGradient is dy times the product of the other elements: y / x where no element is 0, and
// where one is, only that one has a gradient.
func prodGradient(r reduction) onnx.Value {
	if r.whole() {
		return r.dy
	}
	zero := r.equal(r.x, r.num(0))
	filled := r.choose(zero, r.num(1), r.x)
	product := r.reduced("ReduceProd", filled)
	zeros := r.sum(r.mask(zero))
	others := r.Sub(zeros, r.mask(zero)) // zeros among the others
	g := r.Mul(r.dy, r.Div(product, filled))
	return r.Mul(g, r.mask(r.equal(others, r.num(0))))
}

func l1Gradient(r reduction) onnx.Value { return r.Mul(r.sign(r.x), r.dy) }

// l2Gradient: y = |x|, dx = dy x / y, which is 0 for x = 0.
func l2Gradient(r reduction) onnx.Value {
	length := r.choose(r.equal(r.y(), r.num(0)), r.num(1), r.y())
	return r.Mul(r.x, r.Div(r.dy, length))
}

func sumSquareGradient(r reduction) onnx.Value { return r.Mul(r.x, r.times(r.dy, 2)) }

// logSumGradient: y = log(sum x), dx = dy / sum x.
func logSumGradient(r reduction) onnx.Value {
	return r.Mul(r.dy, r.Exp(r.Neg(r.y())))
}

// logSumExpGradient: y = log(sum e^x), dx = dy e^(x-y).
func logSumExpGradient(r reduction) onnx.Value { return r.Mul(r.Exp(r.Sub(r.x, r.y())), r.dy) }
