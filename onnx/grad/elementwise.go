package grad

import (
	"math"

	"github.com/noether-ml/noether/onnx"
)

// A slope writes dy/dx of a function of one number, given the node's input x and output y.
type slope func(c *call, x, y onnx.Value) onnx.Value

// chain is the rule of a function of one number: dx = dy f'(x).
func chain(f slope) rule {
	return func(c *call) {
		c.give(0, func() onnx.Value { return c.Mul(c.dyBeside(c.x(0)), f(c, c.x(0), c.y(0))) })
	}
}

// over is chain for a slope that is written as its reciprocal: dx = dy / f(x).
func over(f slope) rule {
	return func(c *call) {
		c.give(0, func() onnx.Value { return c.Div(c.dyBeside(c.x(0)), f(c, c.x(0), c.y(0))) })
	}
}

func neg(c *call) {
	c.give(0, func() onnx.Value { return c.Neg(c.dy(0)) })
}

func absSlope(c *call, x, _ onnx.Value) onnx.Value { return c.sign(x) }

// sqrt' = 1 / (2 y), infinite at 0.
func sqrtOver(c *call, _, y onnx.Value) onnx.Value { return c.times(y, 2) }

func expSlope(_ *call, _, y onnx.Value) onnx.Value { return y }

func logOver(_ *call, x, _ onnx.Value) onnx.Value { return x }

// reciprocal' = -1 / x^2 = -y^2
func reciprocalSlope(c *call, _, y onnx.Value) onnx.Value { return c.Neg(c.square(y)) }

// erf' = 2 / sqrt(pi) exp(-x^2)
func erfSlope(c *call, x, _ onnx.Value) onnx.Value {
	return c.times(c.Exp(c.Neg(c.square(x))), 2/math.Sqrt(math.Pi))
}

func sinSlope(c *call, x, _ onnx.Value) onnx.Value { return c.Op("Cos", nil, x) }

func cosSlope(c *call, x, _ onnx.Value) onnx.Value { return c.Neg(c.Op("Sin", nil, x)) }

// tan' = 1 + y^2
func tanSlope(c *call, _, y onnx.Value) onnx.Value { return c.Add(c.square(y), c.num(1)) }

func asinOver(c *call, x, _ onnx.Value) onnx.Value {
	return c.Sqrt(c.Sub(c.num(1), c.square(x)))
}

func acosOver(c *call, x, y onnx.Value) onnx.Value { return c.Neg(asinOver(c, x, y)) }

func atanOver(c *call, x, _ onnx.Value) onnx.Value { return c.Add(c.square(x), c.num(1)) }

func sinhSlope(c *call, x, _ onnx.Value) onnx.Value { return c.Op("Cosh", nil, x) }

func coshSlope(c *call, x, _ onnx.Value) onnx.Value { return c.Op("Sinh", nil, x) }

func asinhOver(c *call, x, y onnx.Value) onnx.Value { return c.Sqrt(atanOver(c, x, y)) }

func acoshOver(c *call, x, _ onnx.Value) onnx.Value {
	return c.Sqrt(c.Sub(c.square(x), c.num(1)))
}

func atanhOver(c *call, x, _ onnx.Value) onnx.Value { return c.Sub(c.num(1), c.square(x)) }

// sum of any number of operands; mean, with a part for each.
func sum(c *call) { c.share(c.dy(0)) }

func mean(c *call) { c.share(c.times(c.dy(0), 1/float64(len(c.inputs())))) }

// share gives the same gradient to every operand.
func (c *call) share(g onnx.Value) {
	for _, i := range c.inputs() {
		c.give(i, func() onnx.Value { return c.unbroadcast(g, i) })
	}
}

// extreme is the rule of Max and Min: the operands that attain the result share its gradient
// evenly.
func extreme(c *call) {
	list := c.inputs()
	if len(list) == 1 {
		identity(c)
		return
	}
	attains := func(i int) onnx.Value { return c.mask(c.equal(c.x(i), c.y(0))) }
	ties := attains(list[0])
	for _, i := range list[1:] {
		ties = c.Add(ties, attains(i))
	}
	part := c.Div(c.dy(0), ties)
	for _, i := range list {
		c.give(i, func() onnx.Value { return c.unbroadcast(c.Mul(part, attains(i)), i) })
	}
}

func where(c *call) {
	c.give(1, func() onnx.Value { return c.unbroadcast(c.Where(c.x(0), c.dy(0), c.num(0)), 1) })
	c.give(2, func() onnx.Value { return c.unbroadcast(c.Where(c.x(0), c.num(0), c.dy(0)), 2) })
}

// pow: y = a^b, da = dy b a^(b-1), which is 0 for b = 0 whatever a is; db = dy y ln a, which is 0
// for a = 0 <= b.
func pow(c *call) {
	a, b := c.x(0), c.x(1)
	if c.static.Type(string(b)) != c.static.Type(string(a)) {
		b = c.Cast(b, c.static.Type(string(a)))
	}
	c.give(0, func() onnx.Value {
		if exponent, ok := c.static.Values(string(c.x(1))); ok && len(exponent) == 1 && !c.needs(1) {
			if exponent[0] == 0 {
				return ""
			}
			return c.unbroadcast(c.powConstant(exponent[0]), 0)
		}
		one := c.num(1)
		less := c.Sub(c.choose(c.equal(b, c.num(0)), one, b), one) // b - 1, and 0 for b = 0, where a may be 0 too
		return c.unbroadcast(c.Mul(c.dy(0), c.Mul(b, c.Pow(a, less))), 0)
	})
	c.give(1, func() onnx.Value {
		zero := c.num(0)
		flat := c.both(c.equal(a, zero), c.not(c.less(b, zero)))
		log := c.Log(c.choose(flat, c.num(1), a))
		return c.unbroadcast(c.Mul(c.dy(0), c.Mul(c.y(0), log)), 1)
	})
}

// powConstant is dy b a^(b-1) for a known b other than 0, with products instead of powers where
// that is the same.
func (c *call) powConstant(b float64) onnx.Value {
	if b == 1 {
		return c.dy(0)
	}
	a := c.x(0)
	dy := c.dyBeside(a)
	switch b {
	case 2:
		return c.Mul(c.times(dy, 2), a)
	case 3:
		return c.Mul(c.times(dy, 3), c.square(a))
	case 0.5:
		return c.Div(dy, c.times(c.y(0), 2))
	}
	return c.Mul(c.times(dy, b), c.Pow(a, c.num(b-1)))
}
