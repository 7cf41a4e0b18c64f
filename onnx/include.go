package onnx

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// Include adds a model to the graph: its nodes, weights and functions. Names get the builder's
// scope as a prefix, and a number if they are in use. inputs has a tensor of the graph for each
// input of the model, by the input's name. Include returns the Values of the model's outputs, in
// order. To use other tensors of the model, make them outputs first with rewrite.WithOutputs.
//
// The model must be compatible with the operator set of the graph: see Model.CompatibleWith.
// Weights in external files stay there if all external files of the graph are in one folder.
// Otherwise they are loaded.
func (b *Builder) Include(m *Model, inputs map[string]Value) []Value {
	values := make([]Value, len(m.proto.Graph.Output))
	if b.err != nil {
		return values
	}
	in := &inclusion{b: b, names: map[string]string{"": ""}}
	if err := in.include(m, inputs); err != nil {
		b.Fail("including model %s: %w", m.path, err)
		return values
	}
	for i, out := range m.proto.Graph.Output {
		values[i] = Value(in.names[out.GetName()])
	}
	return values
}

// An inclusion maps the tensors of a model to their names in another graph.
type inclusion struct {
	b     *Builder
	names map[string]string // new names of the tensors of the model
}

func (in *inclusion) include(m *Model, inputs map[string]Value) error {
	if err := m.CompatibleWith(in.b.opset); err != nil {
		return err
	}
	if err := in.domains(m); err != nil {
		return err
	}
	for _, info := range m.Inputs() {
		v, ok := inputs[info.Name]
		v = in.b.current(v)
		if !ok || !in.b.tensors[string(v)] {
			return fmt.Errorf("no tensor of the graph is given for its input %q", info.Name)
		}
		in.names[info.Name] = string(v)
	}
	weights, err := in.weights(m)
	if err != nil {
		return err
	}
	g := in.b.model.proto.Graph
	g.Initializer = append(g.Initializer, weights...)
	from := m.proto.Graph
	for _, t := range from.SparseInitializer {
		t = proto.CloneOf(t)
		t.Values.Name = new(in.define(t.Values.GetName()))
		g.SparseInitializer = append(slices.Clip(g.SparseInitializer), t)
	}
	declared := maps.Clone(in.names) // inputs and weights: their declarations are not copied
	for _, n := range from.Node {
		g.Node = append(g.Node, in.node(n))
	}
	for _, v := range from.ValueInfo {
		if _, known := in.names[v.GetName()]; known && declared[v.GetName()] == "" {
			g.ValueInfo = append(slices.Clip(g.ValueInfo), in.valueInfo(v))
		}
	}
	return nil
}

// domains adds the operator sets and functions of the model to the graph.
func (in *inclusion) domains(m *Model) error {
	p := in.b.model.proto
	for _, o := range m.proto.OpsetImport {
		i := slices.IndexFunc(p.OpsetImport, func(q *pb.OperatorSetIdProto) bool { return q.GetDomain() == o.GetDomain() })
		switch {
		case i < 0:
			in.b.NeedDomain(o.GetDomain(), int(o.GetVersion()))
		case i >= 0 && p.OpsetImport[i].GetVersion() != o.GetVersion() && o.GetDomain() != "":
			return fmt.Errorf("it uses version %d of operators %q and the graph %d", o.GetVersion(), o.GetDomain(), p.OpsetImport[i].GetVersion())
		}
	}
	for _, f := range m.proto.Functions {
		i := slices.IndexFunc(p.Functions, func(g *pb.FunctionProto) bool {
			return g.GetDomain() == f.GetDomain() && g.GetName() == f.GetName()
		})
		switch {
		case i < 0:
			p.Functions = append(slices.Clip(p.Functions), f)
		case !proto.Equal(p.Functions[i], f):
			return fmt.Errorf("its function %q differs from that of the same name in the graph", f.GetName())
		}
	}
	return nil
}

// weights returns the initializers under their new names. It loads external data unless all
// external files of the graph are in one folder.
func (in *inclusion) weights(m *Model) ([]*pb.TensorProto, error) {
	into := in.b.model
	sameFolder := len(m.files) == 0 || len(into.files) == 0 || into.dir == m.dir
	if len(m.files) > 0 && sameFolder {
		into.dir = m.dir
		into.files = slices.Compact(slices.Sorted(slices.Values(slices.Concat(into.files, m.files))))
	}
	var list []*pb.TensorProto
	for _, t := range m.proto.Graph.Initializer {
		if !sameFolder && pbutil.External(t) {
			loaded, err := m.load(t)
			if err != nil {
				return nil, fmt.Errorf("reading weights %q: %w", t.GetName(), err)
			}
			loaded.Name, t = t.Name, loaded
		}
		t = pbutil.Shallow(t)
		t.Name = new(in.define(t.GetName()))
		list = append(list, t)
	}
	return list, nil
}

// define chooses a new name for a tensor of the model, unused in the graph, and returns it.
func (in *inclusion) define(name string) string {
	if name == "" {
		return ""
	}
	newName := in.b.unique(in.b.tensors, in.b.scope+name)
	in.names[name] = newName
	return newName
}

// node returns a copy of a node with new names. Tensors of its subgraphs are renamed too, since
// names must be unique in the whole graph.
func (in *inclusion) node(n *pb.NodeProto) *pb.NodeProto {
	n = pbutil.Shallow(n)
	n.Input = mapNames(n.Input, in.use)
	if len(pbutil.Subgraphs(n)) > 0 {
		n.Attribute = slices.Clone(n.Attribute)
		for i, a := range n.Attribute {
			a = pbutil.Shallow(a)
			if a.G != nil {
				a.G = in.subgraph(a.G)
			}
			a.Graphs = slices.Clone(a.Graphs)
			for k, g := range a.Graphs {
				a.Graphs[k] = in.subgraph(g)
			}
			n.Attribute[i] = a
		}
	}
	n.Output = mapNames(n.Output, in.define)
	if n.GetName() != "" {
		n.Name = new(in.b.unique(in.b.nodes, in.b.scope+n.GetName()))
	}
	return n
}

// mapNames applies a function to each name.
func mapNames(names []string, f func(string) string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = f(name)
	}
	return out
}

// use returns the new name of a tensor that a node of the model reads. An absent optional input has
// the name "" in both graphs.
func (in *inclusion) use(name string) string {
	if newName, ok := in.names[name]; ok {
		return newName
	}
	return name
}

// subgraph returns a copy of a subgraph with new names. Its tensors are not visible outside.
func (in *inclusion) subgraph(g *pb.GraphProto) *pb.GraphProto {
	inner := &inclusion{b: in.b, names: maps.Clone(in.names)}
	g = pbutil.Shallow(g)
	define := func(list []*pb.ValueInfoProto) []*pb.ValueInfoProto {
		out := make([]*pb.ValueInfoProto, len(list))
		for i, v := range list {
			inner.define(v.GetName())
			out[i] = inner.valueInfo(v)
		}
		return out
	}
	g.Input = define(g.Input)
	g.Initializer = slices.Clone(g.Initializer)
	for i, t := range g.Initializer {
		t = pbutil.Shallow(t)
		t.Name = new(inner.define(t.GetName()))
		g.Initializer[i] = t
	}
	g.Node = slices.Clone(g.Node)
	for i, n := range g.Node {
		g.Node[i] = inner.node(n)
	}
	g.ValueInfo = inner.valueInfos(g.ValueInfo)
	g.Output = inner.valueInfos(g.Output)
	return g
}

// valueInfo returns the declaration of a tensor with its new name.
func (in *inclusion) valueInfo(v *pb.ValueInfoProto) *pb.ValueInfoProto {
	v = pbutil.Shallow(v)
	v.Name = new(in.use(v.GetName()))
	return v
}

func (in *inclusion) valueInfos(list []*pb.ValueInfoProto) []*pb.ValueInfoProto {
	out := make([]*pb.ValueInfoProto, len(list))
	for i, v := range list {
		out[i] = in.valueInfo(v)
	}
	return out
}
