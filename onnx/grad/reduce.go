package grad

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
)

// reducedAxes are the axes, counted from the front, over which a reducing node works, given the rank of its input.
func (c *call) reducedAxes(rank int) ([]int, bool) {
	axes, ok := c.listOr("axes", 1)
	if !ok {
		c.fail("its axes are not known before the graph runs")
		return nil, false
	}
	axes = slices.Clone(axes)
	for i := range axes {
		axes[i] = axis(axes[i], rank)
	}
	if len(axes) == 0 && c.attr("noop_with_empty_axes", 0) == 0 {
		for i := range rank {
			axes = append(axes, i)
		}
	}
	slices.Sort(axes)
	return axes, true
}

// kept gives a tensor of the shape of the node's output the axes, of size 1, that the node has removed.
func (c *call) kept(g onnx.Value, axes []int) onnx.Value {
	if c.attr("keepdims", 1) == 0 && len(axes) > 0 {
		return c.Unsqueeze(g, axes...)
	}
	return g
}

func reduceSum(c *call) {
	c.give(0, func() onnx.Value {
		rank, ok := c.rank(c.x(0))
		axes, known := c.reducedAxes(rank)
		if !ok || !known {
			return ""
		}
		return c.expandLike(c.kept(c.dy(0), axes), c.x(0))
	})
}

// reduceMean: each element has its share of the gradient. Of a shape that is not fixed the count is that of the run.
func reduceMean(c *call) {
	c.give(0, func() onnx.Value {
		rank, ok := c.rank(c.x(0))
		axes, known := c.reducedAxes(rank)
		if !ok || !known {
			return ""
		}
		g, count := c.kept(c.dy(0), axes), 1
		for _, a := range axes {
			if d := c.shape(c.x(0))[a]; d < 0 || count < 0 {
				count = -1
			} else {
				count *= d
			}
		}
		if count > 0 {
			g = c.Mul(g, c.number(1/float64(count), c.x(0)))
		} else {
			ones := c.filled(1, c.x(0))
			g = c.Div(g, c.ReduceSum(ones, true, axes...))
		}
		return c.expandLike(g, c.x(0))
	})
}
