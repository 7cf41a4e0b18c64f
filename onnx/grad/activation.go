package grad

import (
	"math"

	"github.com/noether-ml/noether/onnx"
)

// leakyRelu has slope 1 above 0, and alpha at 0 and below.
func leakyRelu(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		below := c.times(c.dy(0), c.attrFloat("alpha", 0.01))
		return c.choose(c.greater(c.x(0), c.num(0)), c.dy(0), below)
	})
}

// pRelu is leakyRelu with slopes that are an operand, broadcast to x.
func pRelu(c *vjp) {
	above := c.greater(c.x(0), c.num(0))
	c.accumulate(0, func() onnx.Value { return c.choose(above, c.dy(0), c.Mul(c.dy(0), c.x(1))) })
	c.accumulate(1, func() onnx.Value { return c.unbroadcast(c.choose(above, c.num(0), c.Mul(c.dy(0), c.x(0))), 1) })
}

// exponential is the rule of y = gain x above 0 and y = depth (e^(x/scale) - 1) below: there, and
// at 0, the slope is (y + depth) / scale.
func (c *vjp) exponential(gain, depth, scale float64) {
	c.accumulate(0, func() onnx.Value {
		below := c.times(c.Mul(c.dy(0), c.Add(c.y(0), c.num(depth))), 1/scale)
		return c.choose(c.greater(c.x(0), c.num(0)), c.times(c.dy(0), gain), below)
	})
}

func elu(c *vjp) { c.exponential(1, c.attrFloat("alpha", 1), 1) }

func celu(c *vjp) {
	alpha := c.attrFloat("alpha", 1)
	c.exponential(1, alpha, alpha)
}

func selu(c *vjp) {
	alpha, gamma := c.attrFloat("alpha", 1.67326319217681884765625), c.attrFloat("gamma", 1.05070102214813232421875)
	c.exponential(gamma, alpha*gamma, 1)
}

func thresholdedRelu(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		return c.zeroUnless(c.greater(c.x(0), c.num(c.attrFloat("alpha", 1))), c.dy(0))
	})
}

// sigmoid' = y (1 - y)
func sigmoidSlope(c *vjp, _, y onnx.Value) onnx.Value { return c.Mul(y, c.Sub(c.num(1), y)) }

// tanh' = 1 - y^2
func tanhSlope(c *vjp, _, y onnx.Value) onnx.Value { return c.Sub(c.num(1), c.square(y)) }

// hardSigmoid: y = min(1, max(0, alpha x + beta)) has slope alpha strictly between 0 and 1.
func hardSigmoid(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		inside := c.both(c.greater(c.y(0), c.num(0)), c.less(c.y(0), c.num(1)))
		return c.zeroUnless(inside, c.times(c.dy(0), c.attrFloat("alpha", 0.2)))
	})
}

// hardSwish: y = x min(1, max(0, x / 6 + 1 / 2)) has slope x / 3 + 1 / 2 from -3 to 3, both
// included.
func hardSwish(c *vjp) {
	c.accumulate(0, func() onnx.Value {
		x, dy := c.x(0), c.dy(0)
		bend := c.Mul(dy, c.Add(c.times(x, 1./3), c.num(0.5)))
		return c.choose(c.greater(x, c.num(3)), dy, c.choose(c.less(x, c.num(-3)), c.num(0), bend))
	})
}

// mish: y = x t where t = tanh(softplus(x)); y' = t + x (1 - t^2) sigmoid(x).
func mishSlope(c *vjp, x, _ onnx.Value) onnx.Value {
	t := c.Tanh(c.Op("Softplus", nil, x))
	return c.Add(t, c.Mul(c.Mul(x, c.Sub(c.num(1), c.square(t))), c.Sigmoid(x)))
}

func softplusSlope(c *vjp, x, _ onnx.Value) onnx.Value { return c.Sigmoid(x) }

// softsign: y = x / (1 + |x|), y' = 1 / (1 + |x|)^2.
func softsignOver(c *vjp, x, _ onnx.Value) onnx.Value {
	return c.square(c.Add(c.Abs(x), c.num(1)))
}

// gelu: y = x P(x) where P is the normal distribution function, or an approximation of it by tanh.
func geluSlope(c *vjp, x, _ onnx.Value) onnx.Value {
	if c.attrString("approximate", "none") == "tanh" {
		return c.geluTanhSlope(x)
	}
	p := c.times(c.Add(c.Op("Erf", nil, c.times(x, math.Sqrt2/2)), c.num(1)), 0.5)
	density := c.times(c.Exp(c.times(c.square(x), -0.5)), 1/math.Sqrt(2*math.Pi))
	return c.Add(p, c.Mul(x, density))
}

// y = x (1 + t) / 2, t = tanh(u), u = k (x + a x^3): y' = (1 + t) / 2 + x / 2 (1 - t^2) k (1 + 3 a
// x^2)
func (c *vjp) geluTanhSlope(x onnx.Value) onnx.Value {
	const a = 0.044715
	k := math.Sqrt(2 / math.Pi)
	one, square := c.num(1), c.square(x)
	t := c.Tanh(c.times(c.Mul(x, c.Add(c.times(square, a), one)), k))
	du := c.times(c.Add(c.times(square, 3*a), one), k)
	bend := c.Mul(c.Mul(x, c.Sub(one, c.square(t))), du)
	return c.times(c.Add(c.Add(t, one), bend), 0.5)
}

// clip passes the gradient where min <= x <= max; what is below goes to min, and what is above to
// max.
func clip(c *vjp) {
	low, high := c.bound(1, "min"), c.bound(2, "max")
	outside := func(compare string, bound onnx.Value) onnx.Value { return c.Op(compare, nil, c.x(0), bound) }
	c.accumulate(0, func() onnx.Value {
		g := c.dy(0)
		if low != "" {
			g = c.choose(outside("Less", low), c.num(0), g)
		}
		if high != "" {
			g = c.choose(outside("Greater", high), c.num(0), g)
		}
		return g
	})
	c.accumulate(1, func() onnx.Value {
		below := outside("Less", low)
		if high != "" {
			below = c.both(below, c.less(low, high))
		}
		return c.unbroadcast(c.zeroUnless(below, c.dy(0)), 1)
	})
	c.accumulate(2, func() onnx.Value {
		above := outside("Greater", high)
		if low != "" {
			above = c.Op("Or", nil, above, c.less(high, low))
		}
		return c.unbroadcast(c.zeroUnless(above, c.dy(0)), 2)
	})
}

// bound is a limit of Clip, an input since opset 11 and an attribute before; empty where there is
// none.
func (c *vjp) bound(i int, attribute string) onnx.Value {
	if c.Opset() >= 11 {
		return c.x(i)
	}
	v := c.attrFloat(attribute, math.Inf(1))
	if math.IsInf(v, 1) {
		return ""
	}
	return c.num(v)
}
