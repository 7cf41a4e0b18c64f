package grad

import (
	"github.com/noether-ml/noether/onnx"
)

// globalAveragePool spreads the gradient of a mean evenly.
func globalAveragePool(c *call) {
	c.give(0, func() onnx.Value {
		x := c.shape(c.x(0))
		if !fixed(x[min(2, len(x)):]) || len(x) < 3 {
			ones := c.filled(1, c.x(0))
			return c.Mul(ones, c.Div(c.dy(0), c.ReduceSum(ones, true, spatial(len(x))...)))
		}
		count := 1
		for _, d := range x[2:] {
			count *= d
		}
		return c.expandLike(c.Mul(c.dy(0), c.number(1/float64(count), c.x(0))), c.x(0))
	})
}

// spatial are the axes after batch and channels.
func spatial(rank int) []int {
	var axes []int
	for i := 2; i < rank; i++ {
		axes = append(axes, i)
	}
	return axes
}

// maxPool sends the gradient of each window to its first maximum: it is added at the place that the operator's second
// output, Indices, names.
func maxPool(c *call) {
	c.give(0, func() onnx.Value {
		indices := c.AddOutput(c.y(0), 1)
		flat := c.Ints(-1)
		zeros := c.ReshapeTo(c.filled(0, c.x(0)), flat)
		attrs := onnx.Attrs{"axis": 0}
		if c.Opset() < 16 {
			c.fail("gradients of MaxPool need opset 16 or later for now")
			return ""
		}
		attrs["reduction"] = "add"
		g := c.Op("ScatterElements", attrs, zeros, c.ReshapeTo(indices, flat), c.ReshapeTo(c.dy(0), flat))
		return c.reshapeLike(g, c.x(0))
	})
}
