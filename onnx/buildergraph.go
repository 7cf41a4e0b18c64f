package onnx

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// Snapshot returns the graph as it is now, without the checks of Model. It may have no output yet.
func (b *Builder) Snapshot() *Model {
	m := b.model.copy()
	g := m.proto.Graph
	g.Node, g.Initializer = slices.Clone(g.Node), slices.Clone(g.Initializer)
	g.Input, g.Output = slices.Clone(g.Input), slices.Clone(g.Output)
	return m
}

// Apply replaces the graph by what a rewrite makes of it. The rewrite must keep the names of all
// tensors that the caller goes on using. Its error is that of the builder.
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

// Nodes are the nodes so far, each after those whose outputs it reads. They are shared: do not
// change them.
func (b *Builder) Nodes() []*pb.NodeProto { return slices.Clip(b.model.proto.Graph.Node) }

// Inputs are the inputs so far.
func (b *Builder) Inputs() []Port { return b.model.Inputs() }

// Outputs are the names of the outputs so far.
func (b *Builder) Outputs() []Value {
	list := make([]Value, 0, len(b.model.proto.Graph.Output))
	for _, o := range b.model.proto.Graph.Output {
		list = append(list, Value(o.GetName()))
	}
	return list
}

// Find is a tensor under the name that it has now, after Output may have renamed it; ok is false if
// there is none.
func (b *Builder) Find(v Value) (now Value, ok bool) {
	v = b.current(v)
	return v, b.tensors[string(v)]
}

// AddOutput is the i-th output of a node that is in the graph: an optional output that nobody has
// asked for so far gets a name. The node is the one that makes the tensor first.
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
		b.own[n.Output[i]] = true
		b.model.proto.Graph.Node = slices.Clone(b.model.proto.Graph.Node)
		b.model.proto.Graph.Node[at] = n
		return Value(n.Output[i])
	}
	b.Fail("no node makes %q first", first)
	return ""
}
