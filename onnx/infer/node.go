package infer

import (
	"math"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// A node is a node with what is known about its inputs.
type node struct {
	node *pb.NodeProto
	in   *inference
	args []fact
}

// arg is the layout of an input, nil where it is absent or unknown.
func (c *node) arg(i int) layout {
	if i < len(c.args) {
		return c.args[i].layout
	}
	return nil
}

// val is the value of an input, nil where it is absent or unknown.
func (c *node) val(i int) *array {
	if i < len(c.args) {
		return c.args[i].value
	}
	return nil
}

// has reports whether an optional input is there.
func (c *node) has(i int) bool { return i < len(c.node.Input) && c.node.Input[i] != "" }

// list is a list of integers that is an attribute in some operator sets and an input in others; ok
// is false where it is given and not known.
func (c *node) list(name string, input int) (values []int, ok bool) {
	if values := onnx.AttrInts(c.node, name); values != nil {
		return values, true
	}
	if !c.has(input) {
		return nil, true
	}
	values = c.val(input).ints()
	return values, values != nil
}

// axisOf is an axis attribute counted from the front; ok is false where it lies outside the rank.
func (c *node) axisOf(name string, otherwise, rank int) (axis int, ok bool) {
	return front(onnx.AttrInt(c.node, name, otherwise), rank)
}

// front counts an axis from the front.
func front(axis, rank int) (int, bool) {
	if axis < 0 {
		axis += rank
	}
	return axis, axis >= 0 && axis < rank
}

// layouts are the layouts of the outputs.
func (c *node) layouts() []layout {
	x := c.arg(0)
	if rule, ok := layoutRules[c.node.GetOpType()]; ok {
		return rule(c, x)
	}
	kept := make([]layout, len(c.node.Output))
	for i := range kept {
		kept[i] = x
	}
	return kept
}

func (c *node) argLayouts() []layout {
	list := make([]layout, 0, len(c.args))
	for i := range c.args {
		if c.has(i) {
			list = append(list, c.arg(i))
		}
	}
	return list
}

// broadcast is the layout of an element-by-element operator. Of sizes other than 1 that differ one
// at most is fixed: what is free beside it is as long, or 1. Of several that are free each may be
// 1, so that of the result is not known.
func (c *node) broadcast(operands ...layout) layout {
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
		sizes = slices.DeleteFunc(sizes, func(d int) bool { return d < 0 || c.in.free[d] })
		if len(sizes) != 1 {
			sizes = []int{-1}
		}
		out[i] = out[i].resized(sizes[0])
	}
	return out
}

// shapeLayout is that of a list of sizes.
func (c *node) shapeLayout() layout {
	if c.arg(0) == nil {
		return unknowns(1)
	}
	return unlabelled(len(c.shapeSizes()))
}

func (c *node) constantLayout() layout {
	for _, a := range c.node.Attribute {
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

// shapeSizes is what Shape returns: the sizes of the input from attribute start to end.
func (c *node) shapeSizes() []int {
	sizes := c.arg(0).sizes()
	bound := func(name string, otherwise int) int {
		v := onnx.AttrInt(c.node, name, otherwise)
		if v < 0 {
			v += len(sizes)
		}
		return max(0, min(v, len(sizes)))
	}
	from, to := bound("start", 0), bound("end", len(sizes))
	return sizes[from:max(from, to)]
}

// fromShape is a layout without meaning, of the shape that an input computes.
func (c *node) fromShape(input int) layout {
	if v := c.val(input); v != nil {
		return unlabelled(v.sizes()...)
	}
	if l := c.arg(input); len(l) == 1 && l[0].size() >= 0 && l[0].size() < maxRank {
		return unknowns(l[0].size())
	}
	return nil
}

// Bounds on what a file can make us allocate: the axes of a tensor, the factors of an axis, the
// size of a dimension.
const (
	maxRank    = 64
	maxFactors = 32
	maxSize    = 1 << 40
)

func unknowns(rank int) layout {
	return unlabelled(slices.Repeat([]int{-1}, rank)...)
}

func (c *node) rangeLength() int {
	if c.val(0) == nil || c.val(1) == nil || c.val(2) == nil {
		return -1
	}
	from, to, step := c.val(0).at(nil), c.val(1).at(nil), c.val(2).at(nil)
	n := (to - from) / step
	if !(n > 0 && n < 1<<31) {
		return -1
	}
	return int(math.Ceil(n))
}

func (c *node) expand(x layout) layout {
	if v := c.val(1); v != nil {
		return c.broadcast(x, unlabelled(v.sizes()...))
	}
	return nil
}

func (c *node) tile(x layout) layout {
	repeats := c.val(1).sizes()
	if x == nil || len(repeats) != len(x) {
		return unknowns(len(x))
	}
	out := make(layout, len(x))
	for i, a := range x {
		out[i] = a.resized(times(a.size(), repeats[i]))
	}
	return out
}

// times multiplies sizes, of which -1 is unknown. A size that no tensor has is unknown, too.
func times(a, b int) int {
	if a < 0 || b < 0 || b > 0 && a > maxSize/b {
		return -1
	}
	return a * b
}

// keepLetters is a layout with the meanings of x and the sizes of another one.
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
