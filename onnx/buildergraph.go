package onnx

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// Snapshot returns the graph without checks; it may have no outputs.
func (b *Builder) Snapshot() *Model {
	m := b.model.copy()
	g := m.proto.Graph
	g.Node, g.Initializer = slices.Clone(g.Node), slices.Clone(g.Initializer)
	g.Input, g.Output = slices.Clone(g.Input), slices.Clone(g.Output)
	return m
}

// Apply replaces the graph by rewrite's result, which must keep the names that the caller still
// uses.
func (b *Builder) Apply(rewrite func(m *Model) (*Model, error)) {
	if b.err != nil {
		return
	}
	m, err := rewrite(b.Snapshot())
	if err != nil {
		b.err = err
		return
	}
	b.model = m.copy()
	b.reserveNames()
}

// Nodes returns the current nodes in topological order. The caller must not change them.
func (b *Builder) Nodes() []*pb.NodeProto { return slices.Clip(b.model.proto.Graph.Node) }

// Inputs returns the current inputs.
func (b *Builder) Inputs() []ValueInfo { return b.model.Inputs() }

// Outputs returns the names of the current outputs.
func (b *Builder) Outputs() []Value {
	list := make([]Value, 0, len(b.model.proto.Graph.Output))
	for _, o := range b.model.proto.Graph.Output {
		list = append(list, Value(o.GetName()))
	}
	return list
}

// Find returns the current name of a tensor, if it exists; Output may have renamed it.
func (b *Builder) Find(v Value) (current Value, ok bool) {
	v = b.current(v)
	return v, b.tensors[string(v)]
}

// AddOutput returns output i of the node of first, added if it is optional and missing. Without
// such a node, the builder fails.
func (b *Builder) AddOutput(first Value, i int) Value {
	if b.err != nil {
		return ""
	}
	first, _ = b.Find(first)
	for at, n := range b.model.proto.Graph.Node {
		if len(n.Output) == 0 || n.Output[0] != string(first) {
			continue
		}
		if i < len(n.Output) && n.Output[i] != "" {
			return Value(n.Output[i])
		}
		n = pbutil.Shallow(n)
		n.Output = append(slices.Clone(n.Output), make([]string, max(0, i+1-len(n.Output)))...)
		n.Output[i] = b.unique(b.tensors, fmt.Sprintf("%s:%d", first, i))
		b.local[n.Output[i]] = true
		b.model.proto.Graph.Node = slices.Clone(b.model.proto.Graph.Node)
		b.model.proto.Graph.Node[at] = n
		return Value(n.Output[i])
	}
	b.Fail("no node has %q as its first output", first)
	return ""
}
