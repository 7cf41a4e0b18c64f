package onnx

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx/pb"
)

// PlainPools takes ceil_mode away from pools in which, at the sizes that are known, it would add a window that begins in the padding behind. Engines
// leave such a window out, as the standard says since opset 22; but of earlier operator sets they infer a size with it, and refuse a graph in
// which both sizes come together. Axes on which ceil_mode does add a window are padded for it.
func (b *Builder) PlainPools() {
	ceils := func(n *pb.NodeProto) bool {
		return standard(n) && slices.Contains([]string{"MaxPool", "AveragePool", "LpPool"}, n.GetOpType()) && len(n.Input) == 1 && AttrInt(n, "ceil_mode", 0) == 1
	}
	if b.err != nil || b.Opset() >= 22 || !slices.ContainsFunc(b.model.proto.Graph.Node, ceils) {
		return
	}
	s := b.Static()
	nodes := slices.Clone(b.model.proto.Graph.Node)
	for i, n := range nodes {
		if !ceils(n) {
			continue
		}
		if pads, ok := padsOfCeilings(n, s.Shape(n.Input[0])); ok {
			nodes[i] = withPads(n, pads)
		}
	}
	b.model.proto.Graph.Node = nodes
}

// padsOfCeilings are pads with which a pool makes the same without ceil_mode, where the inferred size would be wrong with it. A mean that counts padding
// does not count what is added, so its pads stay as they are.
func padsOfCeilings(n *pb.NodeProto, x []int) (pads []int64, ok bool) {
	kernel := AttrInts(n, "kernel_shape")
	rank := len(kernel)
	if rank == 0 || len(x) != rank+2 || slices.Min(x[2:]) < 1 {
		return nil, false
	}
	pads = make([]int64, 2*rank)
	wrong := false
	for i, k := range kernel {
		w := windowOf(n, k, i, rank)
		size := x[2+i]
		places := w.slide(size)
		wrong = wrong || places < w.ceilings(size)
		needs := (places-1)*w.stride + w.dilation*(k-1) + 1 - size - w.pad // beyond the padding
		if w.same || needs > 0 && AttrInt(n, "count_include_pad", 0) == 1 || w.pad-w.head+needs >= k {
			return nil, false
		}
		pads[i], pads[rank+i] = int64(w.head), int64(w.pad-w.head+max(needs, 0))
	}
	return pads, wrong
}

// withPads is a pool with other pads and without ceil_mode.
func withPads(n *pb.NodeProto, pads []int64) *pb.NodeProto {
	n = shallow(n)
	n.Attribute = slices.DeleteFunc(slices.Clone(n.Attribute), func(a *pb.AttributeProto) bool {
		return slices.Contains([]string{"ceil_mode", "pads", "auto_pad"}, a.GetName())
	})
	n.Attribute = append(n.Attribute, &pb.AttributeProto{Name: proto.String("pads"), Type: pb.AttributeProto_INTS.Enum(), Ints: pads})
	return n
}
