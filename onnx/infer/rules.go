package infer

import (
	"strings"

	"github.com/noether-ml/noether/onnx"
)

// A layoutRule gives the layouts of an operator's outputs; x is that of its first input.
type layoutRule func(c *call, x layout) []layout

// layoutRules are those of the operators that do not keep the layout of their first input, as
// activations and normalisations do.
var layoutRules = byOperator(map[string]layoutRule{
	"Constant":                   alone((*call).constantLayout),
	"Shape":                      alone((*call).shapeLayout),
	"Size":                       alone(func(*call) layout { return layout{} }),
	"ConstantOfShape":            alone(func(c *call) layout { return c.fromShape(0) }),
	"RandomNormal RandomUniform": alone(func(c *call) layout { return blanks(onnx.AttrInts(c.node, "shape")...) }),
	"Range":                      alone(func(c *call) layout { return blanks(c.rangeLength()) }),

	"Add Sub Mul Div Pow Mod Min Max Mean Sum Equal Greater GreaterOrEqual Less LessOrEqual And Or Xor Where PRelu BitShift": alone(
		func(c *call) layout { return c.broadcast(c.argLayouts()...) }),

	"Expand":         of((*call).expand),
	"Tile":           of((*call).tile),
	"Transpose":      of((*call).transpose),
	"Reshape":        of((*call).reshape),
	"Flatten":        of((*call).flatten),
	"Squeeze":        of((*call).squeeze),
	"Unsqueeze":      of((*call).unsqueeze),
	"Concat":         alone((*call).concat),
	"Split":          (*call).split,
	"Slice":          of((*call).slice),
	"Gather":         of((*call).gather),
	"GatherElements": of(func(c *call, x layout) layout { return keepLetters(x, c.arg(1)) }),
	"Pad":            of((*call).pad),
	"OneHot":         of((*call).oneHot),
	"DepthToSpace":   of(func(c *call, x layout) layout { return c.depthToSpace(x, true) }),
	"SpaceToDepth":   of(func(c *call, x layout) layout { return c.depthToSpace(x, false) }),

	"Resize Upsample": of((*call).resize),
	"Conv ConvInteger QLinearConv ConvTranspose DeformConv FusedConv": of((*call).conv),
	"MaxPool AveragePool LpPool":                                      twice((*call).pool),
	"GlobalAveragePool GlobalMaxPool GlobalLpPool":                    of(func(_ *call, x layout) layout { return pooled(x) }),

	"MatMul MatMulInteger QLinearMatMul FusedMatMul": alone((*call).matMul),
	"Gemm":   alone((*call).gemm),
	"Einsum": alone((*call).einsum),
	"ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare": of((*call).reduce),
	"ArgMax ArgMin": of((*call).argReduce),
	"TopK":          twice((*call).topK),

	"LSTM GRU RNN":       (*call).recurrent,
	"BatchNormalization": func(c *call, x layout) []layout { return []layout{x, c.arg(3), c.arg(4), c.arg(3), c.arg(4)} },
	"LayerNormalization": (*call).layerNormalization,

	"GatherND NonZero Compress Unique NonMaxSuppression If Loop Scan Optional": func(*call, layout) []layout { return nil }, // not known
})

// of is the rule of an operator whose one output follows from its first input.
func of(f func(c *call, x layout) layout) layoutRule {
	return func(c *call, x layout) []layout { return []layout{f(c, x)} }
}

// alone is the rule of an operator with one output, whose first input is like the others or does
// not matter.
func alone(f func(c *call) layout) layoutRule {
	return func(c *call, _ layout) []layout { return []layout{f(c)} }
}

// twice is the rule of an operator with two outputs of one layout: values, and where they were
// found.
func twice(f func(c *call, x layout) layout) layoutRule {
	return func(c *call, x layout) []layout {
		l := f(c, x)
		return []layout{l, l}
	}
}

// layerNormalization gives the normalised values, and their means and inverse deviations.
func (c *call) layerNormalization(x layout) []layout {
	from, ok := c.axisOf("axis", -1, len(x))
	if !ok {
		return []layout{x}
	}
	l := collapsed(x, func(i int) bool { return i >= from }, true)
	return []layout{x, l, l}
}

// byOperator parts a table whose keys name several operators.
func byOperator[T any](table map[string]T) map[string]T {
	out := map[string]T{}
	for names, v := range table {
		for _, name := range strings.Fields(names) {
			out[name] = v
		}
	}
	return out
}
