package onnx

import (
	"slices"

	"github.com/noether-ml/noether/onnx/pb"
)

// Replace writes the nodes of an operator of the standard set anew, in their places. write adds
// nodes to the builder and returns what stands for the outputs of the node that it is given, which
// keep their names; where it returns nothing the node stays. Bodies of loops and branches are left
// as they are.
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
		b.standFor(n, values)
	}
}

// standFor gives values the names of a node's outputs.
func (b *Builder) standFor(n *pb.NodeProto, values []Value) {
	for i, name := range n.Output {
		switch {
		case name == "" || b.err != nil:
		case i >= len(values) || values[i] == "":
			b.Fail("%s: its output %d is written anew by nothing", Label(n), i)
		case b.own[string(values[i])] && !slices.Contains(values[:i], values[i]):
			b.rename(values[i], Value(name))
		default:
			b.copyTo(name, values[i])
		}
	}
}
