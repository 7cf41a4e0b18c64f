//go:build cgo

package grad_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
)

// An opCase draws random cases of an operator, for some versions of the ONNX operator set (opset):
// as a rule, the first that is tested and later ones that changed it. The methods of generator are
// in generator_test.go: smooth draws values from -2 to 2, positive from 0.5 to 3, nonzero and
// awayFrom values that are not near 0 or near the given kinks (points where the derivative jumps).
// trial is the index of the case. The zero operand is an input that is left out.
type opCase struct {
	op     string
	opsets []int
	draw   func(g *generator) testCase
}

var cases = slices.Concat(elementwiseCases, activationCases, reduceCases, shapeCases, indexCases, layerCases, poolCases, normCases)

// requiredOperators are the operators whose gradients the package must have.
const requiredOperators = `
Conv ConvTranspose BatchNormalization Gemm MatMul Einsum
Add Sub Mul Div Pow Sqrt Exp Log Abs Neg Reciprocal Min Max Sum Mean
Relu LeakyRelu PRelu Elu Selu Celu Sigmoid HardSigmoid HardSwish Mish Softplus Softsign Tanh Erf Gelu Clip Sin Cos
Softmax LogSoftmax LayerNormalization InstanceNormalization GroupNormalization LpNormalization LRN
ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare
MaxPool AveragePool GlobalAveragePool GlobalMaxPool LpPool
Reshape Flatten Transpose Squeeze Unsqueeze Concat Split Slice Gather GatherElements GatherND ScatterND ScatterElements
Expand Tile Pad Resize Upsample DepthToSpace SpaceToDepth Where Cast Identity Dropout CumSum Trilu TopK
LSTM GRU`

func TestEveryOperatorIsChecked(t *testing.T) {
	t.Parallel()
	for _, op := range slices.Concat(strings.Fields(requiredOperators), grad.Operators()) {
		if !slices.ContainsFunc(cases, func(c opCase) bool { return c.op == op }) {
			t.Errorf("%s has no case", op)
		}
	}
}

// unaryCase is an opCase of an operator with one operand and no attributes.
func unaryCase(op string, opset int, draw func(g *generator) operand) opCase {
	return opCase{op, []int{opset, latestOpset}, func(g *generator) testCase { return unary(draw(g), nil) }}
}

// latestOpset is the newest opset that is tested.
const latestOpset = 22

var elementwiseCases = []opCase{
	{"Add", []int{7, 14}, binaryOf((*generator).smooth, (*generator).smooth)},
	{"Sub", []int{7, 14}, binaryOf((*generator).smooth, (*generator).smooth)},
	{"Mul", []int{7, 14}, binaryOf((*generator).smooth, (*generator).smooth)},
	{"Div", []int{7, 14}, binaryOf((*generator).smooth, (*generator).positive)},
	{"Pow", []int{7, 12, 15}, drawPow},
	{"Sum", []int{8, 13}, variadicOf((*generator).smooth)},
	{"Mean", []int{8, 13}, variadicOf((*generator).smooth)},
	{"Min", []int{8, 13}, drawMinMax},
	{"Max", []int{8, 13}, drawMinMax},
	{"Where", []int{9, 16}, drawWhere},
	unaryCase("Sqrt", 7, func(g *generator) operand { return g.positive(g.smallShape()...) }),
	unaryCase("Exp", 7, func(g *generator) operand { return g.smooth(g.smallShape()...) }),
	unaryCase("Log", 7, func(g *generator) operand { return g.positive(g.smallShape()...) }),
	unaryCase("Abs", 7, func(g *generator) operand { return g.nonzero(g.smallShape()...) }),
	unaryCase("Neg", 7, func(g *generator) operand { return g.smooth(g.smallShape()...) }),
	unaryCase("Reciprocal", 7, func(g *generator) operand { return g.positive(g.smallShape()...) }),
	unaryCase("Erf", 9, func(g *generator) operand { return g.smooth(g.smallShape()...) }),
	unaryCase("Sin", 7, func(g *generator) operand { return g.smooth(g.smallShape()...) }),
	unaryCase("Cos", 7, func(g *generator) operand { return g.smooth(g.smallShape()...) }),
	unaryCase("Tan", 7, func(g *generator) operand { return g.uniform(-1, 1, g.smallShape()...) }),
	unaryCase("Asin", 7, func(g *generator) operand { return g.uniform(-0.7, 0.7, g.smallShape()...) }),
	unaryCase("Acos", 7, func(g *generator) operand { return g.uniform(-0.7, 0.7, g.smallShape()...) }),
	unaryCase("Atan", 7, func(g *generator) operand { return g.smooth(g.smallShape()...) }),
	unaryCase("Sinh", 9, func(g *generator) operand { return g.smooth(g.smallShape()...) }),
	unaryCase("Cosh", 9, func(g *generator) operand { return g.smooth(g.smallShape()...) }),
	unaryCase("Asinh", 9, func(g *generator) operand { return g.smooth(g.smallShape()...) }),
	unaryCase("Acosh", 9, func(g *generator) operand { return g.uniform(1.5, 3, g.smallShape()...) }),
	unaryCase("Atanh", 9, func(g *generator) operand { return g.uniform(-0.7, 0.7, g.smallShape()...) }),
	unaryCase("Sign", 9, func(g *generator) operand { return g.nonzero(g.smallShape()...) }),
	unaryCase("Floor", 7, func(g *generator) operand { return g.awayFrom(-2, 2, []float64{-2, -1, 0, 1, 2}, g.smallShape()...) }),
	unaryCase("Ceil", 7, func(g *generator) operand { return g.awayFrom(-2, 2, []float64{-2, -1, 0, 1, 2}, g.smallShape()...) }),
	unaryCase("Round", 11, func(g *generator) operand {
		return g.awayFrom(-2, 2, []float64{-1.5, -0.5, 0.5, 1.5}, g.smallShape()...)
	}),
}

// binaryOf returns a function that draws two operands that are broadcast, by x and y.
func binaryOf(x, y func(*generator, ...int) operand) func(g *generator) testCase {
	return func(g *generator) testCase {
		shapes := g.broadcast(2)
		return testCase{operands: []operand{x(g, shapes[0]...), y(g, shapes[1]...)}}
	}
}

// variadicOf returns a function that draws 1 to 4 operands that are broadcast, by x.
func variadicOf(x func(*generator, ...int) operand) func(g *generator) testCase {
	return func(g *generator) testCase {
		var tc testCase
		for _, shape := range g.broadcast(g.between(1, 4)) {
			tc.operands = append(tc.operands, x(g, shape...))
		}
		return tc
	}
}

// drawMinMax draws operands without ties. Each element of operand i is one of four levels, plus
// 0.125 i, plus noise of at most 0.01.
func drawMinMax(g *generator) testCase {
	shapes := g.broadcast(g.between(1, 4))
	var tc testCase
	for i, shape := range shapes {
		levels := []float64{-1.5, -0.5, 0.5, 1.5}
		tc.operands = append(tc.operands, g.from(shape, func() float64 {
			return levels[g.IntN(4)] + 0.125*float64(i) + 0.01*g.Float64()
		}))
	}
	return tc
}

func drawPow(g *generator) testCase {
	shapes := g.broadcast(2)
	switch g.trial % 4 {
	case 0: // an integer power of numbers of either sign
		return testCase{operands: []operand{g.nonzero(shapes[0]...), g.from([]int{}, func() float64 { return float64(g.between(0, 4)) }).withoutGradient()}}
	case 1:
		return testCase{operands: []operand{g.positive(shapes[0]...), g.smooth(shapes[1]...)}}
	case 2:
		return testCase{operands: []operand{g.positive(shapes[0]...), g.from(shapes[1], func() float64 { return []float64{0.5, -0.5, 2, 3, -1}[g.IntN(5)] })}}
	}
	if g.opset < 12 {
		return testCase{operands: []operand{g.positive(shapes[0]...), g.positive(shapes[1]...)}}
	}
	return testCase{operands: []operand{g.nonzero(shapes[0]...), int64Scalar(g.between(-1, 3))}}
}

func drawWhere(g *generator) testCase {
	shapes := g.broadcast(3)
	return testCase{operands: []operand{g.mask(shapes[0]...), g.smooth(shapes[1]...), g.smooth(shapes[2]...)}}
}

var activationCases = []opCase{
	unaryCase("Relu", 7, func(g *generator) operand { return g.nonzero(g.smallShape()...) }),
	unaryCase("Sigmoid", 7, func(g *generator) operand { return g.smooth(g.smallShape()...) }),
	unaryCase("Tanh", 7, func(g *generator) operand { return g.smooth(g.smallShape()...) }),
	unaryCase("Softplus", 7, func(g *generator) operand { return g.smooth(g.smallShape()...) }),
	unaryCase("Softsign", 7, func(g *generator) operand { return g.nonzero(g.smallShape()...) }),
	{"HardSwish", []int{14, 22}, func(g *generator) testCase { return unary(g.awayFrom(-5, 5, []float64{-3, 3}, g.smallShape()...), nil) }},
	{"Mish", []int{18, 22}, func(g *generator) testCase { return unary(g.smooth(g.smallShape()...), nil) }},
	{"Elu", []int{7, 22}, withAlpha(false)},
	{"LeakyRelu", []int{7, 16}, withAlpha(false)},
	{"Celu", []int{12}, withAlpha(true)},
	{"ThresholdedRelu", []int{10, 22}, func(g *generator) testCase {
		return unary(g.awayFrom(-2, 2, []float64{0.5, 1}, g.smallShape()...), g.optionalAttr("alpha", 0.5))
	}},
	{"Shrink", []int{9, latestOpset}, func(g *generator) testCase {
		if g.coin() {
			return unary(g.awayFrom(-2, 2, []float64{-0.5, 0.5}, g.smallShape()...), nil)
		}
		return unary(g.awayFrom(-2, 2, []float64{-0.75, 0.75}, g.smallShape()...), onnx.Attrs{"bias": 0.25, "lambd": 0.75})
	}},
	{"Selu", []int{7, 22}, func(g *generator) testCase {
		attrs := onnx.Attrs{}
		if g.coin() {
			attrs = onnx.Attrs{"alpha": 1.2, "gamma": 0.9}
		}
		return unary(g.nonzero(g.smallShape()...), attrs)
	}},
	{"HardSigmoid", []int{7, 22}, func(g *generator) testCase {
		if g.coin() {
			return unary(g.awayFrom(-5, 5, []float64{-2.5, 2.5}, g.smallShape()...), nil)
		}
		return unary(g.awayFrom(-3, 3, []float64{-1.6, 2.4}, g.smallShape()...), onnx.Attrs{"alpha": 0.25, "beta": 0.4})
	}},
	{"PRelu", []int{7, 9, 16}, drawPRelu},
	{"Gelu", []int{20}, func(g *generator) testCase {
		return unary(g.smooth(g.smallShape()...), onnx.Attrs{"approximate": []string{"none", "tanh"}[g.trial%2]})
	}},
	{"Clip", []int{7, 11, 12, 13}, drawClip},
}

// optionalAttr returns an attribute, or at random nil, for its default.
func (g *generator) optionalAttr(name string, value any) onnx.Attrs {
	if g.coin() {
		return onnx.Attrs{name: value}
	}
	return nil
}

// withAlpha returns a function that draws a case with or without the attribute alpha, which may be
// negative unless positive is set.
func withAlpha(positive bool) func(g *generator) testCase {
	return func(g *generator) testCase {
		alpha := 0.25 + g.Float64()
		if !positive && g.IntN(4) == 0 {
			alpha = -alpha
		}
		return unary(g.nonzero(g.smallShape()...), g.optionalAttr("alpha", alpha))
	}
}

// drawPRelu draws a slope that is broadcast to x.
func drawPRelu(g *generator) testCase {
	shape := g.smallShape()
	slope := slices.Clone(shape[g.IntN(len(shape)):])
	for i := range slope {
		if g.IntN(3) == 0 {
			slope[i] = 1
		}
	}
	return testCase{operands: []operand{g.nonzero(shape...), g.smooth(slope...)}}
}

func drawClip(g *generator) testCase {
	x := g.awayFrom(-2, 2, []float64{-1, 0.75}, g.smallShape()...)
	if g.opset < 11 {
		attrs := onnx.Attrs{}
		if g.IntN(3) > 0 {
			attrs["min"] = -1.0
		}
		if g.IntN(3) > 0 {
			attrs["max"] = 0.75
		}
		return unary(x, attrs)
	}
	bound := func(v float32) operand { return operand{shape: []int{}, floats: []float32{v}} }
	tc := testCase{operands: []operand{x, bound(-1), bound(0.75)}}
	switch g.IntN(4) {
	case 0:
		tc.operands = tc.operands[:2]
	case 1:
		tc.operands[1] = operand{}
	case 2:
		tc.operands = tc.operands[:1]
	}
	return tc
}
