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
	x             onnx.Value // the feature map
	strides       []int      // of height and width
	before, after int        // number of zero channels before and after those of x
	channels      int        // of x
}

// replaceShortcuts replaces each stridedShortcut by a convolution, which is faster: between
// convolutions ONNX Runtime keeps feature maps in a layout of its own. For Slice and Pad it
// converts them from this layout and back.
func (s *stepBuilder) replaceShortcuts() {
	b := s.b
	g := graphInfo{static: infer.Analyze(b.Snapshot()), producers: map[string]*pb.NodeProto{}}
	for _, n := range b.Nodes() {
		for _, out := range n.Output {
			g.producers[out] = n
		}
	}
	b.Replace("Pad", func(n *pb.NodeProto) []onnx.Value {
		s, ok := g.shortcutOf(n)
		if !ok {
			return nil
		}
		kernel := tensor.New(s.before+s.channels+s.after, s.channels, 1, 1)
		for i := range s.channels {
			kernel.Data[(s.before+i)*s.channels+i] = 1
		}
		return []onnx.Value{b.Conv(s.x, b.Const("", kernel), "", onnx.Attrs{"strides": s.strides})}
	})
}

type graphInfo struct {
	static    *infer.Info              // shapes, types and constant values: what is known without a run
	producers map[string]*pb.NodeProto // the node that computes each tensor
}

// shortcutOf returns the shortcut that ends with n, a Pad of channels with zeros after Slices that
// take every k-th row or column. The feature map must be of float, with at most maxShortcutChannels
// channels.
func (g *graphInfo) shortcutOf(n *pb.NodeProto) (stridedShortcut, bool) {
	s := stridedShortcut{strides: []int{1, 1}}
	pads, ok := g.ints(n, 1) // before each of the four axes NCHW, then after each
	if !ok || len(pads) != 8 || onnx.AttrString(n, "mode", "constant") != "constant" || hasInput(n, 3) || hasInput(n, 2) && !g.isZero(n.Input[2]) {
		return s, false
	}
	s.before, s.after = pads[1], pads[5]
	pads[1], pads[5] = 0, 0
	if slices.ContainsFunc(pads, func(p int) bool { return p != 0 }) || min(s.before, s.after) < 0 {
		return s, false
	}
	x := n.Input[0]
	for g.producers[x].GetOpType() == "Slice" {
		if !g.multiplyStrides(g.producers[x], s.strides) {
			return s, false
		}
		x = g.producers[x].Input[0]
	}
	shape := g.static.Shape(x)
	if len(shape) != 4 || g.static.Type(x) != onnx.Float || slices.Max(s.strides) == 1 {
		return s, false
	}
	s.x, s.channels = onnx.Value(x), shape[1]
	return s, s.channels > 0 && s.channels+s.before+s.after <= maxShortcutChannels
}

// maxShortcutChannels is the largest number of channels of a shortcut that is replaced. The cost of
// the convolution grows with their square.
const maxShortcutChannels = 1024

// multiplyStrides multiplies strides by the steps of a Slice. It returns false, and strides are
// undefined, if the Slice does anything else.
func (g *graphInfo) multiplyStrides(n *pb.NodeProto, strides []int) bool {
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

func (g *graphInfo) ints(n *pb.NodeProto, i int) ([]int, bool) {
	if !hasInput(n, i) {
		return nil, false
	}
	list, ok := g.static.Ints(n.Input[i])
	return slices.Clone(list), ok
}

func (g *graphInfo) isZero(name string) bool {
	v, ok := g.static.Values(name)
	return ok && len(v) == 1 && v[0] == 0
}

func hasInput(n *pb.NodeProto, i int) bool { return i < len(n.Input) && n.Input[i] != "" }
