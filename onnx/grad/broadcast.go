package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// unbroadcast sums g, the gradient of the node's first output as an element-wise operator has it, over the axes along
// which its i-th input was repeated, so that it has that input's shape.
func (c *call) unbroadcast(g onnx.Value, i int) onnx.Value {
	return c.sumTo(g, c.shape(c.y(0)), c.x(i))
}

// sumTo sums g, of the given shape, over the axes along which v is repeated to have it.
func (c *call) sumTo(g onnx.Value, from []int, v onnx.Value) onnx.Value {
	to := c.shape(v)
	if to == nil || from == nil {
		return c.sumToRuntime(g, v)
	}
	lead := len(from) - len(to)
	var repeated, leading []int
	for k := range from {
		switch {
		case k < lead:
			repeated, leading = append(repeated, k), append(leading, k)
		case to[k-lead] == from[k] && from[k] != -1:
		case to[k-lead] == 1:
			repeated = append(repeated, k)
		case to[k-lead] < 0:
			return c.sumToRuntime(g, v) // it may be 1 or not
		}
	}
	switch {
	case len(repeated) == 0:
		return g
	case len(repeated) == len(leading):
		return c.ReduceSum(g, false, leading...)
	case len(leading) == 0:
		return c.ReduceSum(g, true, repeated...)
	case len(repeated) == len(from) && len(to) == 1 && to[0] == 1:
		return c.Reshape(c.ReduceSum(g, false), 1)
	}
	return c.reshapeLike(c.ReduceSum(g, false, repeated...), v)
}

// sumToRuntime is sumTo where the axes are known only when the graph runs. Before opset 13 sums cannot have axes that
// are computed; there shapes of which nothing is known are taken to be equal.
func (c *call) sumToRuntime(g, v onnx.Value) onnx.Value {
	if c.Opset() < 13 {
		return g
	}
	to, from := c.Shape(v), c.Shape(g)
	lead := c.Sub(c.Op("Size", nil, from), c.Op("Size", nil, to))
	ones := c.Expand(c.Int(1), c.Unsqueeze(lead, 0))
	repeated := c.Op("Equal", nil, c.Concat(0, ones, to), c.Int(1))
	axes := c.Squeeze(c.Op("NonZero", nil, repeated), 0)
	sum := c.Op("ReduceSum", onnx.Attrs{"keepdims": 1, "noop_with_empty_axes": 1}, g, axes)
	return c.ReshapeTo(sum, to)
}

// equalShapes reports whether two shapes are the same for certain.
func equalShapes(a, b []int) bool {
	return a != nil && b != nil && slices.Equal(a, b) && !slices.Contains(a, -1)
}
