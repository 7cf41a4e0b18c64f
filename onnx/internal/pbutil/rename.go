package pbutil

import (
	"maps"
	"slices"

	"github.com/noether-ml/noether/onnx/pb"
)

// A Renaming copies nodes into another graph under unused names, subgraphs included, since names
// must be unique in the whole graph.
type Renaming struct {
	Names    map[string]string             // new names of tensors
	Tensor   func(name string) string      // a new name for a tensor
	NodeName func(n *pb.NodeProto) *string // a new name for a node
	// Replaces an attribute; nil: it is left out.
	Attribute func(a *pb.AttributeProto) *pb.AttributeProto
}

// Define returns the new name of an added tensor: that in Names, if any, and "" for "".
func (r *Renaming) Define(name string) string {
	if _, ok := r.Names[name]; !ok && name != "" {
		r.Names[name] = r.Tensor(name)
	}
	return r.Names[name]
}

// Use returns the new name of a tensor that is read, by default the same.
func (r *Renaming) Use(name string) string {
	if newName, ok := r.Names[name]; ok {
		return newName
	}
	return name
}

// Node returns a renamed copy of a node.
func (r *Renaming) Node(n *pb.NodeProto) *pb.NodeProto {
	n = Shallow(n)
	n.Name, n.Input, n.Output = r.NodeName(n), slices.Clone(n.Input), slices.Clone(n.Output)
	for i, name := range n.Input {
		n.Input[i] = r.Use(name)
	}
	for i, name := range n.Output {
		n.Output[i] = r.Define(name)
	}
	attributes := n.Attribute
	n.Attribute = nil
	for _, a := range attributes {
		if a = r.Attribute(a); a == nil {
			continue
		}
		if a.G != nil || len(a.Graphs) > 0 {
			a = Shallow(a)
			if a.G != nil {
				a.G = r.graph(a.G)
			}
			a.Graphs = slices.Clone(a.Graphs)
			for i, g := range a.Graphs {
				a.Graphs[i] = r.graph(g)
			}
		}
		n.Attribute = append(n.Attribute, a)
	}
	return n
}

// Initializer returns a renamed copy of an initializer.
func (r *Renaming) Initializer(t *pb.TensorProto) *pb.TensorProto {
	t = Shallow(t)
	t.Name = new(r.Define(t.GetName()))
	return t
}

// ValueInfo returns the declaration of a tensor under its new name.
func (r *Renaming) ValueInfo(v *pb.ValueInfoProto) *pb.ValueInfoProto {
	v = Shallow(v)
	v.Name = new(r.Use(v.GetName()))
	return v
}

// What a subgraph defines shadows outer tensors and is not visible outside.
func (r *Renaming) graph(g *pb.GraphProto) *pb.GraphProto {
	inner := *r
	inner.Names = maps.Clone(r.Names)
	g = Shallow(g)
	g.Input, g.Initializer, g.Node = slices.Clone(g.Input), slices.Clone(g.Initializer), slices.Clone(g.Node)
	g.ValueInfo, g.Output = slices.Clone(g.ValueInfo), slices.Clone(g.Output)
	for i, v := range g.Input {
		delete(inner.Names, v.GetName())
		inner.Define(v.GetName())
		g.Input[i] = inner.ValueInfo(v)
	}
	for i, t := range g.Initializer {
		delete(inner.Names, t.GetName())
		g.Initializer[i] = inner.Initializer(t)
	}
	for i, n := range g.Node {
		for _, name := range n.Output {
			delete(inner.Names, name)
		}
		g.Node[i] = inner.Node(n)
	}
	for _, list := range [][]*pb.ValueInfoProto{g.ValueInfo, g.Output} {
		for i, v := range list {
			list[i] = inner.ValueInfo(v)
		}
	}
	return g
}
