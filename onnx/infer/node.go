package infer

import (
	"math"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

type operation struct {
	node *pb.NodeProto
	in   *inference // the analysis of the whole graph
	args []fact     // of each input: its layout, and its value if it is a small constant
}

func (op *operation) layout(i int) layout {
	if i < len(op.args) {
		return op.args[i].layout
	}
	return nil
}

func (op *operation) value(i int) *array {
	if i < len(op.args) {
		return op.args[i].value
	}
	return nil
}

func (op *operation) has(i int) bool { return i < len(op.node.Input) && op.node.Input[i] != "" }

// list returns integers that are an attribute in some opsets and this input in others; nil: absent.
// ok is false if they are unknown. Without a name they are always an input.
func (op *operation) list(name string, input int) (values []int, ok bool) {
	if values := onnx.AttrInts(op.node, name); values != nil {
		return values, true
	}
	if !op.has(input) {
		return nil, true
	}
	values = op.value(input).ints()
	return values, values != nil
}

// axisOf returns the attribute axis counted from the front, or fallback; ok is false out of range.
func (op *operation) axisOf(fallback, rank int) (axis int, ok bool) {
	return normalizeAxis(onnx.AttrInt(op.node, "axis", fallback), rank)
}

func normalizeAxis(axis, rank int) (int, bool) {
	if axis < 0 {
		axis += rank
	}
	return axis, axis >= 0 && axis < rank
}

// layouts applies the operator's rule; without one, outputs have the layout of the first input.
func (op *operation) layouts() []layout {
	x := op.layout(0)
	if rule, ok := layoutRules[op.node.GetOpType()]; ok {
		return rule(op, x)
	}
	return slices.Repeat([]layout{x}, len(op.node.Output))
}

func (op *operation) argLayouts() []layout {
	list := make([]layout, 0, len(op.args))
	for i := range op.args {
		if op.has(i) {
			list = append(list, op.layout(i))
		}
	}
	return list
}

// broadcast returns an element-wise operator's layout. Of different sizes other than 1 along an
// axis, at most one is fixed in a valid graph, and the output has it. If all are free, any may be
// 1, so the size is unknown.
func (op *operation) broadcast(operands ...layout) layout {
	out := broadcast(operands...)
	for i := range out {
		var sizes []int
		for _, l := range operands {
			if j := i - len(out) + len(l); j >= 0 && l[j].size() != 1 && !slices.Contains(sizes, l[j].size()) {
				sizes = append(sizes, l[j].size())
			}
		}
		if len(sizes) < 2 {
			continue
		}
		sizes = slices.DeleteFunc(sizes, func(d int) bool { return d < 0 || op.in.assumedSizes[d] })
		if len(sizes) != 1 {
			sizes = []int{-1}
		}
		out[i] = out[i].resized(sizes[0])
	}
	return out
}

func (op *operation) shapeLayout() layout {
	if op.layout(0) == nil {
		return unknownSizes(1)
	}
	return unlabelled(len(op.shapeSizes()))
}

func (op *operation) constantLayout() layout {
	for _, a := range op.node.Attribute {
		switch a.GetName() {
		case "value":
			return unlabelled(pbutil.Ints(a.GetT().GetDims())...)
		case "value_int", "value_float", "value_string":
			return layout{}
		case "value_ints":
			return unlabelled(len(a.Ints))
		case "value_floats":
			return unlabelled(len(a.Floats))
		}
	}
	return nil
}

// shapeSizes returns what Shape returns: the sizes of the input from attribute start to end.
func (op *operation) shapeSizes() []int {
	sizes := op.layout(0).sizes()
	bound := func(name string, fallback int) int {
		v := onnx.AttrInt(op.node, name, fallback)
		if v < 0 {
			v += len(sizes)
		}
		return max(0, min(v, len(sizes)))
	}
	from, to := bound("start", 0), bound("end", len(sizes))
	return sizes[from:max(from, to)]
}

// fromShape returns a layout without letters with the values of an input as sizes; nil if even
// their number is unknown.
func (op *operation) fromShape(input int) layout {
	if v := op.value(input); v != nil {
		return unlabelled(v.sizes()...)
	}
	if l := op.layout(input); len(l) == 1 && l[0].size() >= 0 && l[0].size() < maxRank {
		return unknownSizes(l[0].size())
	}
	return nil
}

// Limits of what a malformed file can need: axes of a tensor, factors of an axis, a size.
const (
	maxRank    = 64
	maxFactors = 32
	maxSize    = 1 << 40
)

func unknownSizes(rank int) layout {
	return unlabelled(slices.Repeat([]int{-1}, rank)...)
}

// rangeLength returns the number of elements of the output of Range, -1 if it is unknown.
func (op *operation) rangeLength() int {
	if op.value(0) == nil || op.value(1) == nil || op.value(2) == nil {
		return -1
	}
	from, to, step := op.value(0).at(nil), op.value(1).at(nil), op.value(2).at(nil)
	n := (to - from) / step
	if !(n > 0 && n < 1<<31) {
		return -1
	}
	return int(math.Ceil(n))
}

func (op *operation) expand(x layout) layout {
	if v := op.value(1); v != nil {
		return op.broadcast(x, unlabelled(v.sizes()...))
	}
	return nil
}

func (op *operation) tile(x layout) layout {
	if x == nil {
		return nil
	}
	repeats := op.value(1).sizes()
	if len(repeats) != len(x) {
		return unknownSizes(len(x))
	}
	out := make(layout, len(x))
	for i, a := range x {
		out[i] = a.resized(times(a.size(), repeats[i]))
	}
	return out
}

// times multiplies two sizes. -1 is unknown, and so is a product above maxSize.
func times(a, b int) int {
	if a < 0 || b < 0 || b > 0 && a > maxSize/b {
		return -1
	}
	return a * b
}

func keepLetters(x, sizes layout) layout {
	if len(x) != len(sizes) {
		return sizes
	}
	out := make(layout, len(x))
	for i := range out {
		out[i] = x[i].resized(sizes[i].size())
	}
	return out
}
