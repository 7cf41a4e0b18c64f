package infer

import (
	"strings"

	"github.com/noether-ml/noether/onnx"
)

// A layoutRule gives the layouts of an operator's outputs; x is that of its first input.
type layoutRule func(c *node, x layout) []layout

// layoutRules are those of the operators that do not keep the layout of their first input, as
// activations and normalisations do.
var layoutRules = byOperator(map[string]layoutRule{
	"Constant":                   alone((*node).constantLayout),
	"Shape":                      alone((*node).shapeLayout),
	"Size":                       alone(func(*node) layout { return layout{} }),
	"ConstantOfShape":            alone(func(c *node) layout { return c.fromShape(0) }),
	"RandomNormal RandomUniform": alone(func(c *node) layout { return unlabelled(onnx.AttrInts(c.node, "shape")...) }),
	"Range":                      alone(func(c *node) layout { return unlabelled(c.rangeLength()) }),

	"Add Sub Mul Div Pow Mod Min Max Mean Sum Equal Greater GreaterOrEqual Less LessOrEqual And Or Xor Where PRelu BitShift": alone(
		func(c *node) layout { return c.broadcast(c.argLayouts()...) }),

	"Expand":         of((*node).expand),
	"Tile":           of((*node).tile),
	"Transpose":      of((*node).transpose),
	"Reshape":        of((*node).reshape),
	"Flatten":        of((*node).flatten),
	"Squeeze":        of((*node).squeeze),
	"Unsqueeze":      of((*node).unsqueeze),
	"Concat":         alone((*node).concat),
	"Split":          (*node).split,
	"Slice":          of((*node).slice),
	"Gather":         of((*node).gather),
	"GatherElements": of(func(c *node, x layout) layout { return keepLetters(x, c.arg(1)) }),
	"Pad":            of((*node).pad),
	"OneHot":         of((*node).oneHot),
	"DepthToSpace":   of(func(c *node, x layout) layout { return c.depthToSpace(x, true) }),
	"SpaceToDepth":   of(func(c *node, x layout) layout { return c.depthToSpace(x, false) }),

	"Resize Upsample": of((*node).resize),
	"Conv ConvInteger QLinearConv ConvTranspose DeformConv FusedConv": of((*node).conv),
	"MaxPool AveragePool LpPool":                                      twice((*node).pool),
	"GlobalAveragePool GlobalMaxPool GlobalLpPool":                    of(func(_ *node, x layout) layout { return pooled(x) }),

	"MatMul MatMulInteger QLinearMatMul FusedMatMul": alone((*node).matMul),
	"Gemm":   alone((*node).gemm),
	"Einsum": alone((*node).einsum),
	"ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare": of((*node).reduce),
	"ArgMax ArgMin": of((*node).argReduce),
	"TopK":          twice((*node).topK),

	"LSTM GRU RNN":       (*node).recurrent,
	"BatchNormalization": func(c *node, x layout) []layout { return []layout{x, c.arg(3), c.arg(4), c.arg(3), c.arg(4)} },
	"LayerNormalization": (*node).layerNormalization,

	"GatherND NonZero Compress Unique NonMaxSuppression If Loop Scan Optional": func(*node, layout) []layout { return nil }, // not known
})

// of is the rule of an operator whose one output follows from its first input.
func of(f func(c *node, x layout) layout) layoutRule {
	return func(c *node, x layout) []layout { return []layout{f(c, x)} }
}

// alone is the rule of an operator with one output, whose first input is like the others or does
// not matter.
func alone(f func(c *node) layout) layoutRule {
	return func(c *node, _ layout) []layout { return []layout{f(c)} }
}

// twice is the rule of an operator with two outputs of one layout: values, and where they were
// found.
func twice(f func(c *node, x layout) layout) layoutRule {
	return func(c *node, x layout) []layout {
		l := f(c, x)
		return []layout{l, l}
	}
}

// layerNormalization gives the normalised values, and their means and inverse deviations.
func (c *node) layerNormalization(x layout) []layout {
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
