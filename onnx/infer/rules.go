package infer

import (
	"strings"

	"github.com/noether-ml/noether/onnx"
)

// A layoutRule returns the layouts of an operator's outputs. x is the layout of the first input.
type layoutRule func(op *operation, x layout) []layout

// layoutRules has the rules by operator; others keep the layout of their first input.
var layoutRules = byOperator(map[string]layoutRule{
	"Constant":                   fromNode((*operation).constantLayout),
	"Shape":                      fromNode((*operation).shapeLayout),
	"Size":                       fromNode(func(*operation) layout { return layout{} }),
	"ConstantOfShape":            fromNode(func(op *operation) layout { return op.fromShape(0) }),
	"RandomNormal RandomUniform": fromNode(func(op *operation) layout { return unlabelled(onnx.AttrInts(op.node, "shape")...) }),
	"Range":                      fromNode(func(op *operation) layout { return unlabelled(op.rangeLength()) }),

	"Add Sub Mul Div Pow Mod Min Max Mean Sum Equal Greater GreaterOrEqual Less LessOrEqual And Or Xor Where PRelu BitShift": fromNode(
		func(op *operation) layout { return op.broadcast(op.argLayouts()...) }),

	"Expand":         fromFirstInput((*operation).expand),
	"Tile":           fromFirstInput((*operation).tile),
	"Transpose":      fromFirstInput((*operation).transpose),
	"Reshape":        fromFirstInput((*operation).reshape),
	"Flatten":        fromFirstInput((*operation).flatten),
	"Squeeze":        fromFirstInput((*operation).squeeze),
	"Unsqueeze":      fromFirstInput((*operation).unsqueeze),
	"Concat":         fromNode((*operation).concat),
	"QLinearConcat":  fromNode(func(op *operation) layout { return op.layout(2).unsized() }), // after the scale and the zero point
	"Split":          (*operation).split,
	"Slice":          fromFirstInput((*operation).slice),
	"Gather":         fromFirstInput((*operation).gather),
	"GatherElements": fromFirstInput(func(op *operation, x layout) layout { return keepLetters(x, op.layout(1)) }),
	"Pad":            fromFirstInput((*operation).pad),
	"OneHot":         fromFirstInput((*operation).oneHot),
	"DepthToSpace":   fromFirstInput(func(op *operation, x layout) layout { return op.moveBlocks(x, toSpace) }),
	"SpaceToDepth":   fromFirstInput(func(op *operation, x layout) layout { return op.moveBlocks(x, toDepth) }),

	"Col2Im":          fromFirstInput((*operation).col2Im),
	"Resize Upsample": fromFirstInput((*operation).resize),
	"Conv ConvInteger QLinearConv ConvTranspose DeformConv FusedConv":       fromFirstInput((*operation).conv),
	"MaxPool AveragePool LpPool QLinearAveragePool":                         twoOutputs((*operation).pool),
	"GlobalAveragePool GlobalMaxPool GlobalLpPool QLinearGlobalAveragePool": fromFirstInput(func(_ *operation, x layout) layout { return globalPool(x) }),

	"MatMul MatMulInteger QLinearMatMul FusedMatMul": fromNode((*operation).matMul),
	"Gemm QGemm": fromNode((*operation).gemm),
	"Einsum":     fromNode((*operation).einsum),
	"ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare": fromFirstInput((*operation).reduce),
	"ArgMax ArgMin": fromFirstInput((*operation).argReduce),
	"TopK":          twoOutputs((*operation).topK),

	"LSTM GRU RNN": (*operation).recurrent,
	"BatchNormalization": func(op *operation, x layout) []layout {
		mean, variance := op.layout(3), op.layout(4)
		// Before opset 14 there may be two more outputs, saved_mean and saved_var.
		return []layout{x, mean, variance, mean, variance}
	},
	"LayerNormalization": (*operation).layerNormalization,

	// Not inferred.
	"GatherND NonZero Compress Unique NonMaxSuppression If Loop Scan Optional QLinearReduceMean": func(*operation, layout) []layout { return nil },
})

// fromFirstInput is for one output whose layout f derives from the first input's.
func fromFirstInput(f func(op *operation, x layout) layout) layoutRule {
	return func(op *operation, x layout) []layout { return []layout{f(op, x)} }
}

// fromNode is for one output whose layout f derives from the attributes or all inputs alike.
func fromNode(f func(op *operation) layout) layoutRule {
	return func(op *operation, _ layout) []layout { return []layout{f(op)} }
}

// twoOutputs is for two outputs of one layout: values and indices.
func twoOutputs(f func(op *operation, x layout) layout) layoutRule {
	return func(op *operation, x layout) []layout {
		l := f(op, x)
		return []layout{l, l}
	}
}

// The outputs are normalised values, means, inverse standard deviations.
func (op *operation) layerNormalization(x layout) []layout {
	from, ok := op.axisOf(-1, len(x))
	if !ok {
		return []layout{x}
	}
	const keep = true // the reduced axes, with size 1
	l := reduced(x, func(i int) bool { return i >= from }, keep)
	return []layout{x, l, l}
}

// byOperator splits a table's keys, which name operators with spaces between them.
func byOperator[T any](table map[string]T) map[string]T {
	out := map[string]T{}
	for names, v := range table {
		for _, name := range strings.Fields(names) {
			out[name] = v
		}
	}
	return out
}
