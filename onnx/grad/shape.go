package grad

import "github.com/noether-ml/noether/onnx"

func identity(c *vjp) {
	c.accumulate(0, func() onnx.Value { return c.dy(0) })
}

func cast(c *vjp) {
	c.accumulate(0, func() onnx.Value { return c.Cast(c.dy(0), c.info.Type(string(c.x(0)))) })
}

func reshape(c *vjp) {
	c.accumulate(0, func() onnx.Value { return c.reshapeLike(c.dy(0), c.x(0)) })
}

// dropout is the identity when a model is used, and that is what the runtime executes unless
// training_mode is set. Then what is kept is scaled by 1 / (1 - ratio), and the second output says
// what is kept.
func dropout(c *vjp) {
	mode, modeKnown := c.info.Values(string(c.x(2)))
	ratio, ratioKnown := c.info.Values(string(c.x(1)))
	if c.x(2) == "" || modeKnown && mode[0] == 0 || ratioKnown && ratio[0] == 0 {
		identity(c)
		return
	}
	c.accumulate(0, func() onnx.Value {
		part := c.num(0.5)
		if c.x(1) != "" {
			part = c.Cast(c.x(1), c.info.Type(string(c.y(0))))
		}
		scale := c.Where(c.x(2), c.Sub(c.num(1), part), c.num(1))
		return c.Where(c.AddOutput(c.y(0), 1), c.Div(c.dy(0), scale), c.num(0))
	})
}
