package grad

import "github.com/noether-ml/noether/onnx"

// keep is g where the condition holds and 0 elsewhere, even where g is infinite.
func (c *call) keep(condition, g onnx.Value) onnx.Value {
	return c.choose(condition, g, c.num(0))
}

// choose is a where the condition holds and b elsewhere, broadcast. Before opset 9 there is no
// Where; then what is not chosen must be finite.
func (c *call) choose(condition, a, b onnx.Value) onnx.Value {
	if c.Opset() >= 9 {
		return c.Where(condition, a, b)
	}
	mask := c.mask(condition)
	return c.Add(c.Mul(mask, a), c.Mul(c.Sub(c.num(1), mask), b))
}

// mask is 1 where a condition holds and 0 elsewhere, of the type of what the node makes.
func (c *call) mask(condition onnx.Value) onnx.Value {
	return c.Cast(condition, c.static.Type(string(c.made())))
}

// num is a constant of rank 0 of the type of what the node makes.
func (c *call) num(v float64) onnx.Value { return c.number(v, c.made()) }

// made is the first output of the node that is there: recurrent nodes may leave out those before.
func (c *call) made() onnx.Value {
	for _, name := range c.node.Output {
		if name != "" {
			return onnx.Value(name)
		}
	}
	return ""
}

func (c *call) greater(a, b onnx.Value) onnx.Value { return c.Op("Greater", nil, a, b) }

func (c *call) less(a, b onnx.Value) onnx.Value { return c.Op("Less", nil, a, b) }

// equal compares floating-point numbers, which the operator Equal does since opset 11.
func (c *call) equal(a, b onnx.Value) onnx.Value {
	if c.Opset() >= 11 {
		return c.Op("Equal", nil, a, b)
	}
	return c.Op("Not", nil, c.Op("Or", nil, c.greater(a, b), c.less(a, b)))
}

func (c *call) both(a, b onnx.Value) onnx.Value { return c.Op("And", nil, a, b) }

func (c *call) not(a onnx.Value) onnx.Value { return c.Op("Not", nil, a) }

// sign is -1, 0 or 1: the operator of that name came with opset 9.
func (c *call) sign(x onnx.Value) onnx.Value {
	if c.Opset() >= 9 {
		return c.Sign(x)
	}
	return c.Sub(c.mask(c.greater(x, c.num(0))), c.mask(c.less(x, c.num(0))))
}

func (c *call) square(x onnx.Value) onnx.Value { return c.Mul(x, x) }

// times multiplies by a number.
func (c *call) times(x onnx.Value, v float64) onnx.Value {
	if v == 1 {
		return x
	}
	return c.Mul(x, c.num(v))
}

// inputs are the indices of the inputs that are there.
func (c *call) inputs() []int {
	var list []int
	for i, name := range c.node.Input {
		if name != "" {
			list = append(list, i)
		}
	}
	return list
}
