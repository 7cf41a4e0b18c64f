package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// unbroadcast sums g, the gradient of the node's first output as an element-wise operator has it,
// over the axes along which its i-th input was repeated, so that it has that input's shape.
func (c *vjp) unbroadcast(g onnx.Value, i int) onnx.Value {
	return c.sumTo(g, c.broadcastInputs(), c.x(i))
}

// broadcastInputs is the shape that the node's inputs are broadcast to.
func (c *vjp) broadcastInputs() []int {
	var shapes [][]int
	for _, k := range c.inputs() {
		shapes = append(shapes, c.shape(c.x(k)))
	}
	return broadcastShape(shapes...)
}

// broadcastShape is the shape of what shapes are broadcast to: nil where a rank is not known, and
// -1 for a dimension that is not known. A free dimension may turn out to be 1, so beside another
// one it says nothing.
func broadcastShape(shapes ...[]int) []int {
	rank := 0
	for _, s := range shapes {
		if s == nil {
			return nil
		}
		rank = max(rank, len(s))
	}
	shape := slices.Repeat([]int{1}, rank)
	for _, s := range shapes {
		for k, d := range s {
			at := &shape[rank-len(s)+k]
			switch {
			case d == *at || d == 1 || *at > 1 && d < 0:
			case *at == 1 || d >= 0:
				*at = d
			default:
				*at = -1
			}
		}
	}
	return shape
}

// sumTo sums g, of the given shape, over the axes along which v is repeated to have it.
func (c *vjp) sumTo(g onnx.Value, from []int, v onnx.Value) onnx.Value {
	to := c.shape(v)
	if to == nil || from == nil {
		return c.sumToRuntime(g, from, v)
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
			return c.sumToRuntime(g, from, v) // it may be 1 or not
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

// sumToRuntime is sumTo where the axes are known only when the graph runs.
func (c *vjp) sumToRuntime(g onnx.Value, from []int, v onnx.Value) onnx.Value {
	if c.Opset() < 13 { // sums cannot have axes that are computed
		return c.sumByRatio(g, from, v)
	}
	sizes := c.Shape(v)
	if to := c.shape(v); from != nil && to != nil {
		if lead := len(from) - len(to); lead > 0 {
			g = c.ReduceSum(g, false, upTo(lead)...)
		}
		return c.sumOnes(g, sizes)
	}
	shape := c.Shape(g)
	lead := c.Sub(c.Op("Size", nil, shape), c.Op("Size", nil, sizes))
	ones := c.Expand(c.Int(1), c.Unsqueeze(lead, 0))
	return c.ReshapeTo(c.sumOnes(g, c.Concat(0, ones, sizes)), sizes)
}

// sumOnes sums g over the axes where sizes, of as many elements as it has axes, are 1, and keeps
// them.
func (c *vjp) sumOnes(g, sizes onnx.Value) onnx.Value {
	axes := c.Squeeze(c.Op("NonZero", nil, c.Op("Equal", nil, sizes, c.Int(1))), 0)
	return c.Op("ReduceSum", onnx.Attrs{"keepdims": 1, "noop_with_empty_axes": 1}, g, axes)
}

// sumByRatio is sumToRuntime for operators of which only the ranks are known: an axis of m elements
// that repeats n is one of m / n by n, and the first of the two is summed.
func (c *vjp) sumByRatio(g onnx.Value, from []int, v onnx.Value) onnx.Value {
	to := c.shape(v)
	if from == nil || to == nil {
		c.fail("before opset 13, the rank of %q must be known", v)
		return ""
	}
	if lead := len(from) - len(to); lead > 0 {
		g = c.ReduceSum(g, false, upTo(lead)...)
	}
	sizes := c.Shape(v)
	split := c.Reshape(c.Concat(1, c.Unsqueeze(c.ratio(c.Shape(g), sizes), 1), c.Unsqueeze(sizes, 1)), -1)
	axes := upTo(len(to))
	for i := range axes {
		axes[i] *= 2
	}
	return c.ReduceSum(c.ReshapeTo(g, split), false, axes...)
}

// ratio divides sizes by sizes that they are multiples of; that of empty axes is 0.
func (c *vjp) ratio(a, b onnx.Value) onnx.Value {
	return c.Div(a, c.Add(b, c.Cast(c.Op("Equal", nil, b, c.Ints(0)), onnx.Int64)))
}

// upTo is 0, 1, ..., n-1.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// expandLike repeats x, which has as many axes as v, until it has the shape of v.
func (c *vjp) expandLike(x, v onnx.Value) onnx.Value {
	if c.Opset() >= 8 {
		return c.Expand(x, c.shapeOf(v))
	}
	return c.Op("Tile", nil, x, c.ratio(c.shapeOf(v), c.Shape(x))) // there is no Expand
}

// equalShapes reports whether two shapes are the same for certain.
func equalShapes(a, b []int) bool {
	return a != nil && b != nil && slices.Equal(a, b) && !slices.Contains(a, -1)
}
