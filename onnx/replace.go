package onnx

import (
	"slices"

	"github.com/noether-ml/noether/onnx/pb"
)

// Replace replaces the nodes of a standard operator outside subgraphs by what write adds: its
// tensors get the names of the node's outputs. If write returns nil, the node is kept.
func (b *Builder) Replace(op string, write func(n *pb.NodeProto) []Value) {
	b.Rewrite(func(n *pb.NodeProto) []Value {
		if n.GetOpType() != op || !IsStandard(n) {
			return nil
		}
		return write(n)
	})
}

// Rewrite is Replace for the nodes of all operators of any domain.
func (b *Builder) Rewrite(write func(n *pb.NodeProto) []Value) {
	if b.err != nil {
		return
	}
	g := b.model.proto.Graph
	old := g.Node
	g.Node = make([]*pb.NodeProto, 0, len(old))
	for _, n := range old {
		values := write(n)
		if len(values) == 0 {
			g.Node = append(g.Node, n)
			continue
		}
		b.replaceOutputs(n, values)
	}
}

func (b *Builder) replaceOutputs(n *pb.NodeProto, values []Value) {
	for i, name := range n.Output {
		switch {
		case name == "" || b.err != nil:
		case i >= len(values) || values[i] == "":
			b.Fail("%s: output %d has no replacement", Label(n), i)
		// Only an added tensor can be renamed, once; others are copied.
		case b.local[string(values[i])] && !slices.Contains(values[:i], values[i]):
			b.rename(values[i], Value(name))
		default:
			b.copyTo(name, values[i])
		}
	}
}
