package onnx

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
)

// Include adds a model's nodes, weights and functions to the graph. Names get the builder's scope
// as a prefix, and a number if they are in use. inputs has a tensor of the graph for each input of
// the model, by the input's name. Include returns the Values of the model's outputs, in order.
// Other tensors must first be made outputs with rewrite.WithOutputs.
//
// Opsets must be compatible: see Model.CompatibleWith. Weights in external files stay there if all
// of the graph's are in one folder, else they are loaded.
func (b *Builder) Include(m *Model, inputs map[string]Value) []Value {
	values := make([]Value, len(m.proto.Graph.Output))
	if b.err != nil {
		return values
	}
	in := &inclusion{Renaming: pbutil.Renaming{
		Names:     map[string]string{"": ""},
		Tensor:    func(name string) string { return b.unique(b.tensors, b.scope+name) },
		Attribute: func(a *pb.AttributeProto) *pb.AttributeProto { return a },
		NodeName: func(n *pb.NodeProto) *string {
			if n.GetName() == "" {
				return nil
			}
			return new(b.unique(b.nodes, b.scope+n.GetName()))
		},
	}, b: b}
	if err := in.include(m, inputs); err != nil {
		b.Fail("including model %s: %w", m.path, err)
		return values
	}
	for i, out := range m.proto.Graph.Output {
		values[i] = Value(in.Names[out.GetName()])
	}
	return values
}

type inclusion struct {
	pbutil.Renaming
	b *Builder
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
		in.Names[info.Name] = string(v)
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
		t.Values.Name = new(in.Define(t.Values.GetName()))
		g.SparseInitializer = append(slices.Clip(g.SparseInitializer), t)
	}
	declared := maps.Clone(in.Names) // inputs and weights: their declarations are not copied
	for _, n := range from.Node {
		g.Node = append(g.Node, in.Node(n))
	}
	for _, v := range from.ValueInfo {
		if _, known := in.Names[v.GetName()]; known && declared[v.GetName()] == "" {
			g.ValueInfo = append(slices.Clip(g.ValueInfo), in.ValueInfo(v))
		}
	}
	return nil
}

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

// weights returns the initializers under their new names, loading external data unless one folder
// has all of the graph's.
func (in *inclusion) weights(m *Model) ([]*pb.TensorProto, error) {
	into := in.b.model
	sameFolder := len(m.files) == 0 || len(into.files) == 0 || into.dir == m.dir
	if len(m.files) > 0 && sameFolder {
		into.dir = m.dir
		states := maps.Clone(m.states)
		maps.Copy(states, into.states)
		into.states = states
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
		list = append(list, in.Initializer(t))
	}
	return list, nil
}
