package grad

import "github.com/noether-ml/noether/onnx"

func add(c *call) {
	c.give(0, func() onnx.Value { return c.unbroadcast(c.dy(0), 0) })
	c.give(1, func() onnx.Value { return c.unbroadcast(c.dy(0), 1) })
}

func sub(c *call) {
	c.give(0, func() onnx.Value { return c.unbroadcast(c.dy(0), 0) })
	c.give(1, func() onnx.Value { return c.Neg(c.unbroadcast(c.dy(0), 1)) })
}

func mul(c *call) {
	c.give(0, func() onnx.Value { return c.unbroadcast(c.Mul(c.dyBeside(c.x(1)), c.x(1)), 0) })
	c.give(1, func() onnx.Value { return c.unbroadcast(c.Mul(c.dyBeside(c.x(0)), c.x(0)), 1) })
}

// div: y = a / b, da = dy / b, db = -da y.
func div(c *call) {
	c.give(0, func() onnx.Value { return c.unbroadcast(c.Div(c.dy(0), c.x(1)), 0) })
	c.give(1, func() onnx.Value {
		return c.Neg(c.unbroadcast(c.Mul(c.Div(c.dy(0), c.x(1)), c.y(0)), 1))
	})
}
