package grad

import "github.com/noether-ml/noether/onnx"

func add(c *vjp) {
	c.accumulate(0, func() onnx.Value { return c.unbroadcast(c.dy(0), 0) })
	c.accumulate(1, func() onnx.Value { return c.unbroadcast(c.dy(0), 1) })
}

func sub(c *vjp) {
	c.accumulate(0, func() onnx.Value { return c.unbroadcast(c.dy(0), 0) })
	c.accumulate(1, func() onnx.Value { return c.Neg(c.unbroadcast(c.dy(0), 1)) })
}

func mul(c *vjp) {
	c.accumulate(0, func() onnx.Value { return c.unbroadcast(c.Mul(c.dyBeside(c.x(1)), c.x(1)), 0) })
	c.accumulate(1, func() onnx.Value { return c.unbroadcast(c.Mul(c.dyBeside(c.x(0)), c.x(0)), 1) })
}

// div: y = a / b, da = dy / b, db = -da y.
func div(c *vjp) {
	c.accumulate(0, func() onnx.Value { return c.unbroadcast(c.Div(c.dy(0), c.x(1)), 0) })
	c.accumulate(1, func() onnx.Value {
		return c.Neg(c.unbroadcast(c.Mul(c.Div(c.dy(0), c.x(1)), c.y(0)), 1))
	})
}
