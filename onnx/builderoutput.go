package onnx

import (
	"slices"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// Output declares the tensor v an output of the graph with the given name; an empty name stands for
// the name of v. v can still be used under its old name.
//
// If a node that this builder has added computes v, the tensor is renamed, unless it is an output
// already or a subgraph reads it. Any other tensor, such as an input, a weight or a tensor of a
// model that is being extended, keeps its name, and an Identity node copies it to the output.
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
		if !b.reserve(name) { // the name is in use, which is now the builder's error
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

// OutputInfo is Output with the type and shape that info declares. The output is named info.Name.
func (b *Builder) OutputInfo(info ValueInfo, v Value) {
	b.Output(info.Name, v)
	if b.err == nil {
		g := b.model.proto.Graph
		last := len(g.Output) - 1
		info.Name = g.Output[last].GetName() // if it was empty, Output has chosen it
		g.Output[last] = info.Proto()
	}
}

// current returns the current name of a tensor.
func (b *Builder) current(v Value) Value {
	for {
		current, ok := b.renamed[v]
		if !ok {
			return v
		}
		v = current
	}
}

// users calls f for the nodes that may compute or read a tensor of this builder, with their
// indices, from the last node back to the one that computes it. Earlier nodes cannot read it.
func (b *Builder) users(name string, f func(i int, n *pb.NodeProto)) {
	for i, n := range slices.Backward(b.model.proto.Graph.Node) {
		computes := slices.Contains(n.Output, name)
		f(i, n)
		if computes {
			return
		}
	}
}

// renamable reports whether a node of this builder computes a tensor that is neither an output nor
// read inside a subgraph. b.local has the tensors that nodes of this builder compute.
func (b *Builder) renamable(name string) bool {
	if !b.local[name] || b.outputs[name] {
		return false
	}
	inSubgraph := false
	b.users(name, func(_ int, n *pb.NodeProto) {
		inSubgraph = inSubgraph || !slices.Contains(n.Input, name) && slices.Contains(Reads(n), name)
	})
	return !inSubgraph
}

// rename renames a tensor of this builder in all nodes. Nodes are replaced, not changed, since
// models that were returned before share them.
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
	b.local[string(to)] = true
	delete(b.renamed, to)
	b.renamed[from] = to
}

// copyTo adds a node that copies v to a tensor of the given name.
func (b *Builder) copyTo(name string, v Value) {
	g := b.model.proto.Graph
	g.Node = append(g.Node, &pb.NodeProto{
		OpType: new("Identity"), Name: new(b.unique(b.nodes, name)), Input: []string{string(v)}, Output: []string{name},
	})
}
