package onnx

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx/pb"
)

// PlainPools rewrites pools with ceil_mode of which, at the sizes that are known, the last window on some axis would begin in the padding behind. Engines
// leave such a window out, as the standard says since opset 22; but of earlier operator sets they infer a size with it, and refuse a graph in
// which both sizes come together. What no other window reads is taken away there: padding, and where strides are longer than kernels the end of
// the input.
func (b *Builder) PlainPools() {
	ceils := func(n *pb.NodeProto) bool {
		return standard(n) && slices.Contains([]string{"MaxPool", "AveragePool", "LpPool"}, n.GetOpType()) && len(n.Input) == 1 && AttrInt(n, "ceil_mode", 0) == 1
	}
	if b.err != nil || b.Opset() >= 22 || !slices.ContainsFunc(b.model.proto.Graph.Node, ceils) {
		return
	}
	s := b.Static()
	g := b.model.proto.Graph
	old := g.Node
	g.Node = make([]*pb.NodeProto, 0, len(old))
	for _, n := range old {
		if ceils(n) {
			n = b.withoutCeilings(n, s.Shape(n.Input[0]))
		}
		g.Node = append(g.Node, n)
	}
}

// withoutCeilings is a pool, of an input of shape x, without what only windows that are left out read.
func (b *Builder) withoutCeilings(n *pb.NodeProto, x []int) *pb.NodeProto {
	kernel := AttrInts(n, "kernel_shape")
	rank := len(kernel)
	if rank == 0 || len(x) != rank+2 || slices.Min(x[2:]) < 1 {
		return n
	}
	pads, longer, cut := make([]int64, 2*rank), make([]int64, 2*rank), make([]int, rank)
	wrong := false
	for i, k := range kernel {
		w := windowOf(n, k, i, rank)
		if w.same {
			return n
		}
		size, tail := x[2+i], w.pad-w.head
		places := w.slide(size)
		unread := size + w.pad - ((places-1)*w.stride + w.dilation*(k-1) + 1) // negative where the last window ends beyond the padding
		pads[i], pads[rank+i] = int64(w.head), int64(tail)
		longer[i], longer[rank+i] = int64(w.head), int64(tail-min(unread, 0))
		if places < w.ceilings(size) {
			wrong = true
			pads[rank+i], cut[i] = int64(max(tail-unread, 0)), max(unread-tail, 0)
		}
	}
	switch {
	case !wrong:
		return n
	case slices.Max(cut) > 0 && len(n.Output) > 1: // indices of maxima count what would be cut, but padding never
		return withPads(n, longer, 0)
	}
	n = withPads(n, pads, 1)
	for i, c := range cut {
		if c > 0 {
			n.Input = []string{string(b.Slice(Value(n.Input[0]), 2+i, 0, x[2+i]-c, 1))}
		}
	}
	return n
}

// withPads is a pool with other pads.
func withPads(n *pb.NodeProto, pads []int64, ceilMode int64) *pb.NodeProto {
	n = shallow(n)
	n.Attribute = slices.DeleteFunc(slices.Clone(n.Attribute), func(a *pb.AttributeProto) bool {
		return slices.Contains([]string{"ceil_mode", "pads", "auto_pad"}, a.GetName())
	})
	n.Attribute = append(n.Attribute, intAttribute("ceil_mode", ceilMode),
		&pb.AttributeProto{Name: proto.String("pads"), Type: pb.AttributeProto_INTS.Enum(), Ints: pads})
	return n
}
