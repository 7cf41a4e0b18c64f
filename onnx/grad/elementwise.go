package grad

import (
	"math"

	"github.com/noether-ml/noether/onnx"
)

// A slope writes f'(x), or 1 / f'(x), for an operator y = f(x) that is applied to each element.
type slope func(op *operation, x, y onnx.Value) onnx.Value

func chain(f slope) rule {
	return unary(func(op *operation) onnx.Value {
		return op.Mul(op.dyForProduct(op.x(0)), f(op, op.x(0), op.y(0)))
	})
}

// chainReciprocal is chain for a slope that writes 1 / f'(x): dx = dy / (1 / f'(x)).
func chainReciprocal(f slope) rule {
	return unary(func(op *operation) onnx.Value {
		return op.Div(op.dyForProduct(op.x(0)), f(op, op.x(0), op.y(0)))
	})
}

// y = -x: dx = -dy
func neg(op *operation) onnx.Value { return op.Neg(op.dy(0)) }

// y = |x|: y' = sign(x), 0 at 0
func absSlope(op *operation, x, _ onnx.Value) onnx.Value { return op.sign(x) }

// y = sqrt(x): 1 / y' = 2 y, so y' is infinite at 0
func sqrtReciprocal(op *operation, _, y onnx.Value) onnx.Value { return op.times(y, 2) }

// y = exp(x): y' = y
func expSlope(_ *operation, _, y onnx.Value) onnx.Value { return y }

// y = ln(x): 1 / y' = x
func logReciprocal(_ *operation, x, _ onnx.Value) onnx.Value { return x }

// y = 1 / x: y' = -1 / x^2 = -y^2
func reciprocalSlope(op *operation, _, y onnx.Value) onnx.Value { return op.Neg(op.square(y)) }

// y = erf(x): y' = 2 / sqrt(pi) exp(-x^2)
func erfSlope(op *operation, x, _ onnx.Value) onnx.Value {
	return op.times(op.Exp(op.Neg(op.square(x))), 2/math.Sqrt(math.Pi))
}

// y = sin(x): y' = cos(x)
func sinSlope(op *operation, x, _ onnx.Value) onnx.Value { return op.Op("Cos", nil, x) }

// y = cos(x): y' = -sin(x)
func cosSlope(op *operation, x, _ onnx.Value) onnx.Value { return op.Neg(op.Op("Sin", nil, x)) }

// y = tan(x): y' = 1 + y^2
func tanSlope(op *operation, _, y onnx.Value) onnx.Value { return op.Add(op.square(y), op.num(1)) }

// y = asin(x): 1 / y' = sqrt(1 - x^2)
func asinReciprocal(op *operation, x, y onnx.Value) onnx.Value {
	return op.Sqrt(atanhReciprocal(op, x, y))
}

// y = acos(x): 1 / y' = -sqrt(1 - x^2)
func acosReciprocal(op *operation, x, y onnx.Value) onnx.Value {
	return op.Neg(asinReciprocal(op, x, y))
}

// y = atan(x): 1 / y' = 1 + x^2
func atanReciprocal(op *operation, x, _ onnx.Value) onnx.Value {
	return op.Add(op.square(x), op.num(1))
}

// y = sinh(x): y' = cosh(x)
func sinhSlope(op *operation, x, _ onnx.Value) onnx.Value { return op.Op("Cosh", nil, x) }

// y = cosh(x): y' = sinh(x)
func coshSlope(op *operation, x, _ onnx.Value) onnx.Value { return op.Op("Sinh", nil, x) }

// y = asinh(x): 1 / y' = sqrt(1 + x^2)
func asinhReciprocal(op *operation, x, y onnx.Value) onnx.Value {
	return op.Sqrt(atanReciprocal(op, x, y))
}

// y = acosh(x): 1 / y' = sqrt(x^2 - 1)
func acoshReciprocal(op *operation, x, _ onnx.Value) onnx.Value {
	return op.Sqrt(op.Sub(op.square(x), op.num(1)))
}

// y = atanh(x): 1 / y' = 1 - x^2
func atanhReciprocal(op *operation, x, _ onnx.Value) onnx.Value {
	return op.Sub(op.num(1), op.square(x))
}

// accumulateSummed is accumulate for g of the broadcast shape, summed to input i's.
func (op *operation) accumulateSummed(i int, g func() onnx.Value) {
	op.accumulate(i, func() onnx.Value { return op.unbroadcast(g(), i) })
}

// accumulateAll adds the same gradient to every input, each of which may be broadcast.
func (op *operation) accumulateAll(g onnx.Value) {
	for _, i := range op.inputs() {
		op.accumulateSummed(i, func() onnx.Value { return g })
	}
}

// y = x_1 + ... + x_n: dx_i = dy
func sum(op *operation) { op.accumulateAll(op.dy(0)) }

// y = (x_1 + ... + x_n) / n: dx_i = dy / n
func mean(op *operation) { op.accumulateAll(op.times(op.dy(0), 1/float64(len(op.inputs())))) }

// y = A - B: dA = dy, dB = -dy
func sub(op *operation) {
	op.accumulateSummed(0, func() onnx.Value { return op.dy(0) })
	op.accumulate(1, func() onnx.Value { return op.Neg(op.unbroadcast(op.dy(0), 1)) })
}

// y = A B, by elements: dA = dy B, dB = dy A
func mul(op *operation) {
	op.accumulateSummed(0, func() onnx.Value { return op.Mul(op.dyForProduct(op.x(1)), op.x(1)) })
	op.accumulateSummed(1, func() onnx.Value { return op.Mul(op.dyForProduct(op.x(0)), op.x(0)) })
}

// y = A / B: dA = dy / B, dB = -dA y
func div(op *operation) {
	dA := func() onnx.Value { return op.Div(op.dy(0), op.x(1)) }
	op.accumulateSummed(0, dA)
	op.accumulate(1, func() onnx.Value { return op.Neg(op.unbroadcast(op.Mul(dA(), op.y(0)), 1)) })
}

// extreme is the rule of Max and Min. The inputs that equal the result share its gradient evenly:
// dx_i = dy / (number of inputs that equal y) where x_i = y, else 0.
func extreme(op *operation) {
	inputs := op.inputs()
	if len(inputs) == 1 {
		unary(identity)(op)
		return
	}
	equalsY := func(i int) onnx.Value { return op.mask(op.equal(op.x(i), op.y(0))) }
	ties := equalsY(inputs[0])
	for _, i := range inputs[1:] {
		ties = op.Add(ties, equalsY(i))
	}
	share := op.Div(op.dy(0), ties)
	for _, i := range inputs {
		op.accumulateSummed(i, func() onnx.Value { return op.Mul(share, equalsY(i)) })
	}
}

// y = X where the condition holds, else Y: dX = dy there, dY = dy elsewhere
func where(op *operation) {
	op.accumulateSummed(1, func() onnx.Value { return op.Where(op.x(0), op.dy(0), op.num(0)) })
	op.accumulateSummed(2, func() onnx.Value { return op.Where(op.x(0), op.num(0), op.dy(0)) })
}

// Z = X^Y: dX = dZ Y X^(Y-1), which is 0 for Y = 0 and every X; dY = dZ Z ln(X), which is 0 for X =
// 0 <= Y.
func pow(op *operation) {
	x, y := op.x(0), op.x(1)
	if op.elementType(y) != op.elementType(x) {
		y = op.Cast(y, op.elementType(x))
	}
	op.accumulate(0, func() onnx.Value {
		if exponent, ok := op.info.Values(string(op.x(1))); ok && len(exponent) == 1 && !op.wanted(1) {
			if exponent[0] == 0 {
				return "" // zero
			}
			return op.unbroadcast(op.powConstant(exponent[0]), 0)
		}
		one := op.num(1)
		// Y - 1, but 0 for Y = 0, where X may be 0 too.
		reduced := op.Sub(op.choose(op.equal(y, op.num(0)), one, y), one)
		return op.unbroadcast(op.Mul(op.dy(0), op.Mul(y, op.Pow(x, reduced))), 0)
	})
	op.accumulateSummed(1, func() onnx.Value {
		zero := op.num(0)
		flat := op.and(op.equal(x, zero), op.not(op.less(y, zero)))
		log := op.Log(op.choose(flat, op.num(1), x))
		return op.Mul(op.dy(0), op.Mul(op.y(0), log))
	})
}

// powConstant is dZ Y X^(Y-1) for known Y != 0, by equal products instead of powers.
func (op *operation) powConstant(y float64) onnx.Value {
	if y == 1 {
		return op.dy(0)
	}
	x := op.x(0)
	dz := op.dyForProduct(x)
	switch y {
	case 2:
		return op.Mul(op.times(dz, 2), x)
	case 3:
		return op.Mul(op.times(dz, 3), op.square(x))
	case 0.5:
		return op.Div(dz, op.times(op.y(0), 2))
	}
	return op.Mul(op.times(dz, y), op.Pow(x, op.num(y-1)))
}
