package grad

import "github.com/noether-ml/noether/onnx"

// zeroUnless is g where the condition holds and 0 elsewhere, even where g is infinite.
func (c *vjp) zeroUnless(condition, g onnx.Value) onnx.Value {
	return c.choose(condition, g, c.num(0))
}

// choose is a where the condition holds and b elsewhere, broadcast. Before opset 9 there is no
// Where; then what is not chosen must be finite.
func (c *vjp) choose(condition, a, b onnx.Value) onnx.Value {
	if c.Opset() >= 9 {
		return c.Where(condition, a, b)
	}
	mask := c.mask(condition)
	return c.Add(c.Mul(mask, a), c.Mul(c.Sub(c.num(1), mask), b))
}

// mask is 1 where a condition holds and 0 elsewhere, of the type of what the node makes.
func (c *vjp) mask(condition onnx.Value) onnx.Value {
	return c.Cast(condition, c.info.Type(string(c.firstOutput())))
}

// num is a constant of rank 0 of the type of what the node makes.
func (c *vjp) num(v float64) onnx.Value { return c.number(v, c.firstOutput()) }

// firstOutput is the first output of the node that is there: recurrent nodes may leave out those before.
func (c *vjp) firstOutput() onnx.Value {
	for _, name := range c.node.Output {
		if name != "" {
			return onnx.Value(name)
		}
	}
	return ""
}

func (c *vjp) greater(a, b onnx.Value) onnx.Value { return c.Op("Greater", nil, a, b) }

func (c *vjp) less(a, b onnx.Value) onnx.Value { return c.Op("Less", nil, a, b) }

// equal compares floating-point numbers, which the operator Equal does since opset 11.
func (c *vjp) equal(a, b onnx.Value) onnx.Value {
	if c.Opset() >= 11 {
		return c.Op("Equal", nil, a, b)
	}
	return c.Op("Not", nil, c.Op("Or", nil, c.greater(a, b), c.less(a, b)))
}

func (c *vjp) both(a, b onnx.Value) onnx.Value { return c.Op("And", nil, a, b) }

func (c *vjp) not(a onnx.Value) onnx.Value { return c.Op("Not", nil, a) }

// sign is -1, 0 or 1: the operator of that name came with opset 9.
func (c *vjp) sign(x onnx.Value) onnx.Value {
	if c.Opset() >= 9 {
		return c.Sign(x)
	}
	return c.Sub(c.mask(c.greater(x, c.num(0))), c.mask(c.less(x, c.num(0))))
}

func (c *vjp) square(x onnx.Value) onnx.Value { return c.Mul(x, x) }

// times multiplies by a number.
func (c *vjp) times(x onnx.Value, v float64) onnx.Value {
	if v == 1 {
		return x
	}
	return c.Mul(x, c.num(v))
}

// inputs are the indices of the inputs that are there.
func (c *vjp) inputs() []int {
	var list []int
	for i, name := range c.node.Input {
		if name != "" {
			list = append(list, i)
		}
	}
	return list
}
