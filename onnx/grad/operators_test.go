//go:build cgo

package grad_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/grad"
)

// A case draws trials of an operator, for each operator set with which the operator changed.
type opCase struct {
	op     string
	opsets []int
	draw   func(g *gen) trial
}

var cases = slices.Concat(elementwiseCases, activationCases, reduceCases, moveCases, indexCases, layerCases, poolCases, normCases)

// promised are the operators whose gradients the package must have.
const promised = `
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
	for _, op := range slices.Concat(strings.Fields(promised), grad.Operators()) {
		if !slices.ContainsFunc(cases, func(c opCase) bool { return c.op == op }) {
			t.Errorf("%s has no case", op)
		}
	}
}

// on makes a case of an operator that has one operand and no attributes.
func on(op string, opset int, draw func(g *gen) operand) opCase {
	return opCase{op, []int{opset, latest}, func(g *gen) trial { return unary(draw(g), nil) }}
}

// latest is the newest operator set that is tested.
const latest = 22

var elementwiseCases = []opCase{
	{"Add", []int{7, 14}, pairOf((*gen).smooth, (*gen).smooth)},
	{"Sub", []int{7, 14}, pairOf((*gen).smooth, (*gen).smooth)},
	{"Mul", []int{7, 14}, pairOf((*gen).smooth, (*gen).smooth)},
	{"Div", []int{7, 14}, pairOf((*gen).smooth, (*gen).positive)},
	{"Pow", []int{7, 12, 15}, drawPow},
	{"Sum", []int{8, 13}, severalOf((*gen).smooth)},
	{"Mean", []int{8, 13}, severalOf((*gen).smooth)},
	{"Min", []int{8, 13}, drawExtreme},
	{"Max", []int{8, 13}, drawExtreme},
	{"Where", []int{9, 16}, drawWhere},
	on("Sqrt", 7, func(g *gen) operand { return g.positive(g.some()...) }),
	on("Exp", 7, func(g *gen) operand { return g.smooth(g.some()...) }),
	on("Log", 7, func(g *gen) operand { return g.positive(g.some()...) }),
	on("Abs", 7, func(g *gen) operand { return g.signless(g.some()...) }),
	on("Neg", 7, func(g *gen) operand { return g.smooth(g.some()...) }),
	on("Reciprocal", 7, func(g *gen) operand { return g.positive(g.some()...) }),
	on("Erf", 9, func(g *gen) operand { return g.smooth(g.some()...) }),
	on("Sin", 7, func(g *gen) operand { return g.smooth(g.some()...) }),
	on("Cos", 7, func(g *gen) operand { return g.smooth(g.some()...) }),
	on("Tan", 7, func(g *gen) operand { return g.uniform(-1, 1, g.some()...) }),
	on("Asin", 7, func(g *gen) operand { return g.uniform(-0.7, 0.7, g.some()...) }),
	on("Acos", 7, func(g *gen) operand { return g.uniform(-0.7, 0.7, g.some()...) }),
	on("Atan", 7, func(g *gen) operand { return g.smooth(g.some()...) }),
	on("Sinh", 9, func(g *gen) operand { return g.smooth(g.some()...) }),
	on("Cosh", 9, func(g *gen) operand { return g.smooth(g.some()...) }),
	on("Asinh", 9, func(g *gen) operand { return g.smooth(g.some()...) }),
	on("Acosh", 9, func(g *gen) operand { return g.uniform(1.5, 3, g.some()...) }),
	on("Atanh", 9, func(g *gen) operand { return g.uniform(-0.7, 0.7, g.some()...) }),
	on("Sign", 9, func(g *gen) operand { return g.signless(g.some()...) }),
	on("Floor", 7, func(g *gen) operand { return g.away(-2, 2, []float64{-2, -1, 0, 1, 2}, g.some()...) }),
	on("Ceil", 7, func(g *gen) operand { return g.away(-2, 2, []float64{-2, -1, 0, 1, 2}, g.some()...) }),
	on("Round", 11, func(g *gen) operand { return g.away(-2, 2, []float64{-1.5, -0.5, 0.5, 1.5}, g.some()...) }),
}

// pairOf draws two operands that are broadcast.
func pairOf(x, y func(*gen, ...int) operand) func(g *gen) trial {
	return func(g *gen) trial {
		shapes := g.broadcast(2)
		return trial{operands: []operand{x(g, shapes[0]...), y(g, shapes[1]...)}}
	}
}

func severalOf(x func(*gen, ...int) operand) func(g *gen) trial {
	return func(g *gen) trial {
		var tr trial
		for _, shape := range g.broadcast(g.between(1, 4)) {
			tr.operands = append(tr.operands, x(g, shape...))
		}
		return tr
	}
}

// drawExtreme keeps the operands apart from each other.
func drawExtreme(g *gen) trial {
	shapes := g.broadcast(g.between(1, 4))
	var tr trial
	for i, shape := range shapes {
		levels := []float64{-1.5, -0.5, 0.5, 1.5}
		tr.operands = append(tr.operands, g.from(shape, func() float64 {
			return levels[g.IntN(4)] + 0.125*float64(i) + 0.01*g.Float64()
		}))
	}
	return tr
}

func drawPow(g *gen) trial {
	shapes := g.broadcast(2)
	switch g.trial % 4 {
	case 0: // a whole power of numbers of either sign
		return trial{operands: []operand{g.signless(shapes[0]...), g.from([]int{}, func() float64 { return float64(g.between(0, 4)) }).give()}}
	case 1:
		return trial{operands: []operand{g.positive(shapes[0]...), g.smooth(shapes[1]...)}}
	case 2:
		return trial{operands: []operand{g.positive(shapes[0]...), g.from(shapes[1], func() float64 { return []float64{0.5, -0.5, 2, 3, -1}[g.IntN(5)] })}}
	}
	if g.opset < 12 {
		return trial{operands: []operand{g.positive(shapes[0]...), g.positive(shapes[1]...)}}
	}
	return trial{operands: []operand{g.signless(shapes[0]...), number(g.between(-1, 3))}}
}

func drawWhere(g *gen) trial {
	shapes := g.broadcast(3)
	return trial{operands: []operand{g.mask(shapes[0]...), g.smooth(shapes[1]...), g.smooth(shapes[2]...)}}
}

var activationCases = []opCase{
	on("Relu", 7, func(g *gen) operand { return g.signless(g.some()...) }),
	on("Sigmoid", 7, func(g *gen) operand { return g.smooth(g.some()...) }),
	on("Tanh", 7, func(g *gen) operand { return g.smooth(g.some()...) }),
	on("Softplus", 7, func(g *gen) operand { return g.smooth(g.some()...) }),
	on("Softsign", 7, func(g *gen) operand { return g.signless(g.some()...) }),
	{"HardSwish", []int{14, 22}, func(g *gen) trial { return unary(g.away(-5, 5, []float64{-3, 3}, g.some()...), nil) }},
	{"Mish", []int{18, 22}, func(g *gen) trial { return unary(g.smooth(g.some()...), nil) }},
	{"Elu", []int{7, 22}, withAlpha(false)},
	{"LeakyRelu", []int{7, 16}, withAlpha(false)},
	{"Celu", []int{12}, withAlpha(true)},
	{"ThresholdedRelu", []int{10, 22}, func(g *gen) trial { return unary(g.away(-2, 2, []float64{0.5, 1}, g.some()...), g.maybe("alpha", 0.5)) }},
	{"Selu", []int{7, 22}, func(g *gen) trial {
		attrs := onnx.Attrs{}
		if g.coin() {
			attrs = onnx.Attrs{"alpha": 1.2, "gamma": 0.9}
		}
		return unary(g.signless(g.some()...), attrs)
	}},
	{"HardSigmoid", []int{7, 22}, func(g *gen) trial {
		if g.coin() {
			return unary(g.away(-5, 5, []float64{-2.5, 2.5}, g.some()...), nil)
		}
		return unary(g.away(-3, 3, []float64{-1.6, 2.4}, g.some()...), onnx.Attrs{"alpha": 0.25, "beta": 0.4})
	}},
	{"PRelu", []int{7, 9, 16}, drawPRelu},
	{"Gelu", []int{20}, func(g *gen) trial {
		return unary(g.smooth(g.some()...), onnx.Attrs{"approximate": []string{"none", "tanh"}[g.trial%2]})
	}},
	{"Clip", []int{7, 11, 12, 13}, drawClip},
}

// maybe is an attribute, or its default.
func (g *gen) maybe(name string, value any) onnx.Attrs {
	if g.coin() {
		return onnx.Attrs{name: value}
	}
	return nil
}

func withAlpha(positive bool) func(g *gen) trial {
	return func(g *gen) trial {
		alpha := 0.25 + g.Float64()
		if !positive && g.IntN(4) == 0 {
			alpha = -alpha
		}
		return unary(g.signless(g.some()...), g.maybe("alpha", alpha))
	}
}

// drawPRelu has a slope that is broadcast to x, and not the reverse.
func drawPRelu(g *gen) trial {
	shape := g.some()
	slope := slices.Clone(shape[g.IntN(len(shape)):])
	for i := range slope {
		if g.IntN(3) == 0 {
			slope[i] = 1
		}
	}
	return trial{operands: []operand{g.signless(shape...), g.smooth(slope...)}}
}

func drawClip(g *gen) trial {
	x := g.away(-2, 2, []float64{-1, 0.75}, g.some()...)
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
	tr := trial{operands: []operand{x, bound(-1), bound(0.75)}}
	switch g.IntN(4) {
	case 0:
		tr.operands = tr.operands[:2]
	case 1:
		tr.operands[1] = operand{}
	case 2:
		tr.operands = tr.operands[:1]
	}
	return tr
}
