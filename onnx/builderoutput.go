package onnx

import (
	"slices"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// Output declares an output and gives it a name; an empty one keeps the tensor's own. The value can
// still be used under its old name. What this builder has made is renamed; other tensors (inputs,
// weights, those of a model that is being extended) keep their names and are copied to the output.
func (b *Builder) Output(name string, v Value) {
	v = b.current(v)
	if b.err == nil && !b.tensors[string(v)] {
		b.Fail("output %q is %q, which does not exist", name, v)
	}
	if b.err != nil {
		return
	}
	if name == "" {
		name = string(v)
	}
	if name != string(v) {
		if !b.take(name) {
			return
		}
		if b.renamable(string(v)) {
			b.rename(v, Value(name))
		} else {
			b.copyTo(name, v)
		}
	}
	if b.outputs[name] {
		b.Fail("output %q exists already", name)
		return
	}
	b.outputs[name] = true
	g := b.model.proto.Graph
	g.Output = append(g.Output, &pb.ValueInfoProto{Name: &name})
}

// OutputPort is Output with a declared type and shape. The output is named p.Name.
func (b *Builder) OutputPort(p Port, v Value) {
	b.Output(p.Name, v)
	if b.err == nil {
		g := b.model.proto.Graph
		last := len(g.Output) - 1
		p.Name = g.Output[last].GetName()
		g.Output[last] = p.Proto()
	}
}

// current returns a tensor under the name that it has now.
func (b *Builder) current(v Value) Value {
	for {
		now, ok := b.renamed[v]
		if !ok {
			return v
		}
		v = now
	}
}

// users calls f for the index of every node that may make or read a tensor of this builder, from
// the last to the one that makes it: no node before that one can read it.
func (b *Builder) users(name string, f func(i int, n *pb.NodeProto)) {
	for i, n := range slices.Backward(b.model.proto.Graph.Node) {
		made := slices.Contains(n.Output, name)
		f(i, n)
		if made {
			return
		}
	}
}

// renamable reports whether a tensor is of this builder, and neither an output already nor read
// inside a subgraph.
func (b *Builder) renamable(name string) bool {
	if !b.own[name] || b.outputs[name] {
		return false
	}
	inside := false
	b.users(name, func(_ int, n *pb.NodeProto) {
		inside = inside || !slices.Contains(n.Input, name) && slices.Contains(Reads(n), name)
	})
	return !inside
}

// rename gives a tensor of this builder another name, wherever it is used. Nodes are replaced, not
// changed: a model that was returned before may hold them.
func (b *Builder) rename(from, to Value) {
	swap := func(names []string) []string {
		names = slices.Clone(names)
		for i := range names {
			if names[i] == string(from) {
				names[i] = string(to)
			}
		}
		return names
	}
	nodes := b.model.proto.Graph.Node
	b.users(string(from), func(i int, n *pb.NodeProto) {
		if slices.Contains(n.Input, string(from)) || slices.Contains(n.Output, string(from)) {
			nodes[i] = pbutil.Shallow(n)
			nodes[i].Input, nodes[i].Output = swap(n.Input), swap(n.Output)
		}
	})
	b.own[string(to)] = true
	delete(b.renamed, to)
	b.renamed[from] = to
}

func (b *Builder) copyTo(name string, v Value) {
	g := b.model.proto.Graph
	g.Node = append(g.Node, &pb.NodeProto{
		OpType: pbutil.Ptr("Identity"), Name: pbutil.Ptr(b.unique(b.nodes, name)), Input: []string{string(v)}, Output: []string{name},
	})
}
