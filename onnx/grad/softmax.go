package grad

import "github.com/noether-ml/noether/onnx"

// softmaxAxes are the axes over which Softmax and its like normalise: one since opset 13, and
// before that one and all after it together.
func (c *vjp) softmaxAxes() ([]int, bool) {
	rank, ok := c.rank(c.x(0))
	if c.Opset() >= 13 {
		return []int{axis(c.attr("axis", -1), rank)}, ok
	}
	return upTo(rank)[axis(c.attr("axis", 1), rank):], ok
}

// softmax: dx = y (dy - sum(dy y)).
func softmax(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		axes, ok := c.softmaxAxes()
		if !ok {
			return ""
		}
		weighted := c.Mul(c.dy(0), c.y(0))
		return c.Sub(weighted, c.Mul(c.y(0), c.sumOver(weighted, axes)))
	})
}

// logSoftmax: dx = dy - exp(y) sum(dy).
func logSoftmax(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		axes, ok := c.softmaxAxes()
		if !ok {
			return ""
		}
		return c.Sub(c.dy(0), c.Mul(c.Exp(c.y(0)), c.sumOver(c.dy(0), axes)))
	})
}

// sumOver sums over axes and keeps them, with size 1. No axes: no sum.
func (c *vjp) sumOver(x onnx.Value, axes []int) onnx.Value {
	if len(axes) == 0 {
		return x
	}
	return c.ReduceSum(x, true, axes...)
}
