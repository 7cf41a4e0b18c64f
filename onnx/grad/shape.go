package grad

import "github.com/noether-ml/noether/onnx"

func identity(c *call) {
	c.give(0, func() onnx.Value { return c.dy(0) })
}

func cast(c *call) {
	c.give(0, func() onnx.Value { return c.Cast(c.dy(0), c.static.Type(string(c.x(0)))) })
}

func reshape(c *call) {
	c.give(0, func() onnx.Value { return c.reshapeLike(c.dy(0), c.x(0)) })
}

// dropout is the identity when a model is used, and that is what the runtime executes unless training_mode is set.
func dropout(c *call) {
	if training, known := c.static.Values(string(c.x(2))); c.x(2) != "" && (!known || training[0] != 0) {
		c.fail("gradients of Dropout in training mode are not supported: set its input training_mode to false")
		return
	}
	identity(c)
}
