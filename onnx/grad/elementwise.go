package grad

import (
	"math"

	"github.com/noether-ml/noether/onnx"
)

// A slope writes dy/dx of a function of one number, given the node's input x and output y.
type slope func(c *vjp, x, y onnx.Value) onnx.Value

// chain is the rule of a function of one number: dx = dy f'(x).
func chain(f slope) rule {
	return func(c *vjp) {
		c.accumulate(0, func() onnx.Value { return c.Mul(c.dyBeside(c.x(0)), f(c, c.x(0), c.y(0))) })
	}
}

// over is chain for a slope that is written as its reciprocal: dx = dy / f(x).
func over(f slope) rule {
	return func(c *vjp) {
		c.accumulate(0, func() onnx.Value { return c.Div(c.dyBeside(c.x(0)), f(c, c.x(0), c.y(0))) })
	}
}

func neg(c *vjp) {
	c.accumulate(0, func() onnx.Value { return c.Neg(c.dy(0)) })
}

func absSlope(c *vjp, x, _ onnx.Value) onnx.Value { return c.sign(x) }

// sqrt' = 1 / (2 y), infinite at 0.
func sqrtOver(c *vjp, _, y onnx.Value) onnx.Value { return c.times(y, 2) }

func expSlope(_ *vjp, _, y onnx.Value) onnx.Value { return y }

func logOver(_ *vjp, x, _ onnx.Value) onnx.Value { return x }

// reciprocal' = -1 / x^2 = -y^2
func reciprocalSlope(c *vjp, _, y onnx.Value) onnx.Value { return c.Neg(c.square(y)) }

// erf' = 2 / sqrt(pi) exp(-x^2)
func erfSlope(c *vjp, x, _ onnx.Value) onnx.Value {
	return c.times(c.Exp(c.Neg(c.square(x))), 2/math.Sqrt(math.Pi))
}

func sinSlope(c *vjp, x, _ onnx.Value) onnx.Value { return c.Op("Cos", nil, x) }

func cosSlope(c *vjp, x, _ onnx.Value) onnx.Value { return c.Neg(c.Op("Sin", nil, x)) }

// tan' = 1 + y^2
func tanSlope(c *vjp, _, y onnx.Value) onnx.Value { return c.Add(c.square(y), c.num(1)) }

func asinOver(c *vjp, x, _ onnx.Value) onnx.Value {
	return c.Sqrt(c.Sub(c.num(1), c.square(x)))
}

func acosOver(c *vjp, x, y onnx.Value) onnx.Value { return c.Neg(asinOver(c, x, y)) }

func atanOver(c *vjp, x, _ onnx.Value) onnx.Value { return c.Add(c.square(x), c.num(1)) }

func sinhSlope(c *vjp, x, _ onnx.Value) onnx.Value { return c.Op("Cosh", nil, x) }

func coshSlope(c *vjp, x, _ onnx.Value) onnx.Value { return c.Op("Sinh", nil, x) }

func asinhOver(c *vjp, x, y onnx.Value) onnx.Value { return c.Sqrt(atanOver(c, x, y)) }

func acoshOver(c *vjp, x, _ onnx.Value) onnx.Value {
	return c.Sqrt(c.Sub(c.square(x), c.num(1)))
}

func atanhOver(c *vjp, x, _ onnx.Value) onnx.Value { return c.Sub(c.num(1), c.square(x)) }

// sum of any number of operands; mean, with a part for each.
func sum(c *vjp) { c.share(c.dy(0)) }

func mean(c *vjp) { c.share(c.times(c.dy(0), 1/float64(len(c.inputs())))) }

// share gives the same gradient to every operand.
func (c *vjp) share(g onnx.Value) {
	for _, i := range c.inputs() {
		c.accumulate(i, func() onnx.Value { return c.unbroadcast(g, i) })
	}
}

// extreme is the rule of Max and Min: the operands that attain the result share its gradient
// evenly.
func extreme(c *vjp) {
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
		c.accumulate(i, func() onnx.Value { return c.unbroadcast(c.Mul(part, attains(i)), i) })
	}
}

func where(c *vjp) {
	c.accumulate(1, func() onnx.Value { return c.unbroadcast(c.Where(c.x(0), c.dy(0), c.num(0)), 1) })
	c.accumulate(2, func() onnx.Value { return c.unbroadcast(c.Where(c.x(0), c.num(0), c.dy(0)), 2) })
}

// pow: y = a^b, da = dy b a^(b-1), which is 0 for b = 0 whatever a is; db = dy y ln a, which is 0
// for a = 0 <= b.
func pow(c *vjp) {
	a, b := c.x(0), c.x(1)
	if c.info.Type(string(b)) != c.info.Type(string(a)) {
		b = c.Cast(b, c.info.Type(string(a)))
	}
	c.accumulate(0, func() onnx.Value {
		if exponent, ok := c.info.Values(string(c.x(1))); ok && len(exponent) == 1 && !c.wanted(1) {
			if exponent[0] == 0 {
				return ""
			}
			return c.unbroadcast(c.powConstant(exponent[0]), 0)
		}
		one := c.num(1)
		less := c.Sub(c.choose(c.equal(b, c.num(0)), one, b), one) // b - 1, and 0 for b = 0, where a may be 0 too
		return c.unbroadcast(c.Mul(c.dy(0), c.Mul(b, c.Pow(a, less))), 0)
	})
	c.accumulate(1, func() onnx.Value {
		zero := c.num(0)
		flat := c.both(c.equal(a, zero), c.not(c.less(b, zero)))
		log := c.Log(c.choose(flat, c.num(1), a))
		return c.unbroadcast(c.Mul(c.dy(0), c.Mul(c.y(0), log)), 1)
	})
}

// powConstant is dy b a^(b-1) for a known b other than 0, with products instead of powers where
// that is the same.
func (c *vjp) powConstant(b float64) onnx.Value {
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
