package invert

import (
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// A stridedShortcut takes every stride-th position of a feature map and pads its channels with
// zeros: the parameter-free shortcut of He et al. (2016), option A. It equals a 1 x 1 convolution
// whose kernel is an identity matrix padded with zeros.
type stridedShortcut struct {
	x             onnx.Value
	strides       []int // height, width
	before, after int   // channels of zeros before and after
	channels      int
}

// writeShortcuts replaces such shortcuts by convolutions. Slice and Pad make the engine convert the
// layout of its feature maps before and after them, in the forward and the backward pass. A
// convolution does not.
func (s *step) writeShortcuts() {
	b := s.b
	g := graphInfo{static: infer.Analyze(b.Snapshot()), producers: map[string]*pb.NodeProto{}}
	for _, n := range b.Nodes() {
		for _, out := range n.Output {
			g.producers[out] = n
		}
	}
	b.Replace("Pad", func(n *pb.NodeProto) []onnx.Value {
		c, ok := g.shortcutOf(n)
		if !ok {
			return nil
		}
		kernel := tensor.New(c.before+c.channels+c.after, c.channels, 1, 1)
		for i := range c.channels {
			kernel.Data[(c.before+i)*c.channels+i] = 1
		}
		return []onnx.Value{b.Conv(c.x, b.Const("", kernel), "", onnx.Attrs{"strides": c.strides})}
	})
}

// A graphInfo holds what is known about the tensors of a graph.
type graphInfo struct {
	static *infer.Info
	// the node that computes each tensor
	producers map[string]*pb.NodeProto
}

// shortcutOf recognises a Pad of channels after at least one Slice.
func (g *graphInfo) shortcutOf(n *pb.NodeProto) (stridedShortcut, bool) {
	c := stridedShortcut{strides: []int{1, 1}}
	pads, ok := g.ints(n, 1)
	if !ok || len(pads) != 8 || onnx.AttrString(n, "mode", "constant") != "constant" || hasInput(n, 3) || hasInput(n, 2) && !g.zero(n.Input[2]) {
		return c, false
	}
	c.before, c.after = pads[1], pads[5]
	pads[1], pads[5] = 0, 0
	if slices.ContainsFunc(pads, func(p int) bool { return p != 0 }) || min(c.before, c.after) < 0 {
		return c, false
	}
	x := n.Input[0]
	for g.producers[x].GetOpType() == "Slice" {
		if !g.strideOf(g.producers[x], c.strides) {
			return c, false
		}
		x = g.producers[x].Input[0]
	}
	shape := g.static.Shape(x)
	if len(shape) != 4 || g.static.Type(x) != onnx.Float || slices.Max(c.strides) == 1 {
		return c, false
	}
	c.x, c.channels = onnx.Value(x), shape[1]
	return c, c.channels > 0 && c.channels+c.before+c.after <= maxShortcutChannels
}

// maxShortcutChannels bounds the channels of a shortcut: the cost of the convolution grows with
// their square.
const maxShortcutChannels = 1024

// strideOf reports whether a Slice takes every k-th position of height or width, and multiplies the
// strides by k.
func (g *graphInfo) strideOf(n *pb.NodeProto, strides []int) bool {
	starts, okStarts := g.ints(n, 1)
	ends, okEnds := g.ints(n, 2)
	axes, okAxes := g.ints(n, 3)
	steps, okSteps := g.ints(n, 4)
	shape := g.static.Shape(n.Input[0])
	if !okStarts || !okEnds || !okAxes || !okSteps || len(shape) != 4 {
		return false
	}
	for i, a := range axes {
		if a < 0 {
			a += 4
		}
		if a < 2 || a > 3 || shape[a] <= 0 || starts[i] != 0 || ends[i] < shape[a] || steps[i] < 1 || steps[i] > shape[a] {
			return false
		}
		strides[a-2] *= steps[i]
	}
	return true
}

// ints returns the integers of a node's i-th input, if they are known.
func (g *graphInfo) ints(n *pb.NodeProto, i int) ([]int, bool) {
	if !hasInput(n, i) {
		return nil, false
	}
	list, ok := g.static.Ints(n.Input[i])
	return slices.Clone(list), ok
}

// zero reports whether a tensor is a constant 0.
func (g *graphInfo) zero(name string) bool {
	v, ok := g.static.Values(name)
	return ok && len(v) == 1 && v[0] == 0
}

// hasInput reports whether a node has an i-th input.
func hasInput(n *pb.NodeProto, i int) bool { return i < len(n.Input) && n.Input[i] != "" }
