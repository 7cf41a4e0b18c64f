package grad

import "github.com/noether-ml/noether/onnx"

func neg(c *call) {
	c.give(0, func() onnx.Value { return c.Neg(c.dy(0)) })
}

// sqrt: y = sqrt(x), dx = dy / (2 y).
func sqrt(c *call) {
	c.give(0, func() onnx.Value { return c.Div(c.dy(0), c.Mul(c.y(0), c.number(2, c.x(0)))) })
}
