package grad

import (
	"math"

	"github.com/noether-ml/noether/onnx"
)

// y = max(x, 0): dx = dy where y > 0, else 0. Reading y, a runtime can still fuse it with the node
// of x. Where y is likely in blocks of channels (see blocked.go), so is the gradient.
func relu(op *operation) onnx.Value {
	dy := op.dyForProduct(op.x(0))
	if !op.outputBlocked() {
		return op.Mul(dy, op.mask(op.greater(op.y(0), op.num(0))))
	}
	if op.gradients[op.y(0)] != "" { // dy is not to be expanded: it has the shape of y already
		dy = op.toBlocked(dy, op.y(0))
	}
	return op.markBlocked(op.Mul(dy, op.blockedMask()), dy)
}

// y = x for x > 0, else alpha x: dx = dy for x > 0, else alpha dy
func leakyRelu(op *operation) onnx.Value {
	below := op.times(op.dy(0), op.attrFloat("alpha", 0.01))
	return op.choose(op.greater(op.x(0), op.num(0)), op.dy(0), below)
}

// y = x for x > 0, else slope x: dx = dy and dslope = 0 for x > 0, else dx = slope dy and
// dslope = x dy. slope is broadcast to x.
func pRelu(op *operation) {
	above := op.greater(op.x(0), op.num(0))
	op.accumulate(0, func() onnx.Value { return op.choose(above, op.dy(0), op.Mul(op.dy(0), op.x(1))) })
	op.accumulateSummed(1, func() onnx.Value { return op.choose(above, op.num(0), op.Mul(op.dy(0), op.x(0))) })
}

// exponential is the gradient of y = gain x for x > 0, else y = depth (exp(x / scale) - 1): dx =
// gain dy for x > 0, else (y + depth) / scale dy.
func (op *operation) exponential(gain, depth, scale float64) onnx.Value {
	below := op.times(op.Mul(op.dy(0), op.Add(op.y(0), op.num(depth))), 1/scale)
	return op.choose(op.greater(op.x(0), op.num(0)), op.times(op.dy(0), gain), below)
}

// y = x for x > 0, else alpha (exp(x) - 1)
func elu(op *operation) onnx.Value { return op.exponential(1, op.attrFloat("alpha", 1), 1) }

// y = x for x > 0, else alpha (exp(x / alpha) - 1)
func celu(op *operation) onnx.Value {
	alpha := op.attrFloat("alpha", 1)
	return op.exponential(1, alpha, alpha)
}

// y = gamma x for x > 0, else gamma alpha (exp(x) - 1)
func selu(op *operation) onnx.Value {
	alpha, gamma := op.attrFloat("alpha", 1.67326319217681884765625), op.attrFloat("gamma", 1.05070102214813232421875)
	return op.exponential(gamma, alpha*gamma, 1)
}

// y = x for x > alpha, else 0: dx = dy for x > alpha, else 0
func thresholdedRelu(op *operation) onnx.Value {
	return op.zeroUnless(op.greater(op.x(0), op.num(op.attrFloat("alpha", 1))), op.dy(0))
}

// y = x - bias for x > lambd, x + bias for x < -lambd, else 0: dx = dy outside of [-lambd, lambd],
// else 0
func shrink(op *operation) onnx.Value {
	bound := op.attrFloat("lambd", 0.5)
	outside := op.or(op.greater(op.x(0), op.num(bound)), op.less(op.x(0), op.num(-bound)))
	return op.zeroUnless(outside, op.dy(0))
}

// The functions below whose names end in Slope return y', the derivative of y with respect to x, by
// which dy is multiplied.

// y = sigmoid(x): y' = y (1 - y)
func sigmoidSlope(op *operation, _, y onnx.Value) onnx.Value { return op.Mul(y, op.Sub(op.num(1), y)) }

// y = tanh(x): y' = 1 - y^2
func tanhSlope(op *operation, _, y onnx.Value) onnx.Value { return op.Sub(op.num(1), op.square(y)) }

// y = min(1, max(0, alpha x + beta)): dx = alpha dy where 0 < y < 1, else 0
func hardSigmoid(op *operation) onnx.Value {
	inside := op.and(op.greater(op.y(0), op.num(0)), op.less(op.y(0), op.num(1)))
	return op.zeroUnless(inside, op.times(op.dy(0), op.attrFloat("alpha", 0.2)))
}

// y = x min(1, max(0, x / 6 + 1 / 2)): dx = dy for x > 3, 0 for x < -3, else (x / 3 + 1 / 2) dy
func hardSwish(op *operation) onnx.Value {
	x, dy := op.x(0), op.dy(0)
	between := op.Mul(dy, op.Add(op.times(x, 1./3), op.num(0.5)))
	return op.choose(op.greater(x, op.num(3)), dy, op.choose(op.less(x, op.num(-3)), op.num(0), between))
}

// y = x t with t = tanh(softplus(x)): y' = t + x (1 - t^2) sigmoid(x)
func mishSlope(op *operation, x, _ onnx.Value) onnx.Value {
	t := op.Tanh(op.Op("Softplus", nil, x))
	return op.Add(t, op.Mul(op.Mul(x, op.Sub(op.num(1), op.square(t))), op.Sigmoid(x)))
}

// y = ln(1 + exp(x)): y' = sigmoid(x)
func softplusSlope(op *operation, x, _ onnx.Value) onnx.Value { return op.Sigmoid(x) }

// y = x / (1 + |x|): 1 / y' = (1 + |x|)^2, by which dy is divided
func softsignReciprocal(op *operation, x, _ onnx.Value) onnx.Value {
	return op.square(op.Add(op.Abs(x), op.num(1)))
}

// y = x P(x): y' = P(x) + x p(x), where P is the normal distribution function and p its density,
// unless P is approximated by tanh
func geluSlope(op *operation, x, _ onnx.Value) onnx.Value {
	if op.attrString("approximate", "none") == "tanh" {
		return op.geluTanhSlope(x)
	}
	distribution := op.times(op.Add(op.Op("Erf", nil, op.times(x, math.Sqrt2/2)), op.num(1)), 0.5)
	density := op.times(op.Exp(op.times(op.square(x), -0.5)), 1/math.Sqrt(2*math.Pi))
	return op.Add(distribution, op.Mul(x, density))
}

// y = x (1 + t) / 2 with t = tanh(u), u = k (x + a x^3): y' = (1 + t + x (1 - t^2) u') / 2 with u'
// = k (1 + 3 a x^2)
func (op *operation) geluTanhSlope(x onnx.Value) onnx.Value {
	const a = 0.044715
	k := math.Sqrt(2 / math.Pi)
	one, square := op.num(1), op.square(x)
	t := op.Tanh(op.times(op.Mul(x, op.Add(op.times(square, a), one)), k))
	du := op.times(op.Add(op.times(square, 3*a), one), k)
	dt := op.Mul(op.Mul(x, op.Sub(one, op.square(t))), du)
	return op.times(op.Add(op.Add(t, one), dt), 0.5)
}

// y = min(max, max(min, input)): dinput = dy where min <= input <= max, dmin = dy where input < min
// < max, dmax = dy where input > max or max < min; all are 0 elsewhere.
func clip(op *operation) {
	low, high := op.clipBound(1, "min"), op.clipBound(2, "max")
	below := func() onnx.Value { return op.less(op.x(0), low) }
	above := func() onnx.Value { return op.greater(op.x(0), high) }
	op.accumulate(0, func() onnx.Value {
		g := op.dy(0)
		if low != "" {
			g = op.choose(below(), op.num(0), g)
		}
		if high != "" {
			g = op.choose(above(), op.num(0), g)
		}
		return g
	})
	op.accumulateSummed(1, func() onnx.Value {
		condition := below()
		if high != "" {
			condition = op.and(condition, op.less(low, high))
		}
		return op.zeroUnless(condition, op.dy(0))
	})
	op.accumulateSummed(2, func() onnx.Value {
		condition := above()
		if low != "" {
			condition = op.or(condition, op.less(high, low))
		}
		return op.zeroUnless(condition, op.dy(0))
	})
}

// clipBound is a bound of Clip, input i or, before opset 11, an attribute; empty if absent.
func (op *operation) clipBound(i int, attribute string) onnx.Value {
	if op.Opset() >= 11 {
		return op.x(i)
	}
	v := op.attrFloat(attribute, math.Inf(1))
	if math.IsInf(v, 1) {
		return ""
	}
	return op.num(v)
}
