package onnx

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/noether-ml/noether/onnx/pb"
)

// WithOutputs returns a model whose outputs are exactly the named tensors, in that order. It shares the weights of m,
// and leaves out the nodes, weights and inputs that no output needs.
func (m *Model) WithOutputs(names []string) (*Model, error) {
	types := m.elementTypes()
	declared := map[string]*pb.ValueInfoProto{}
	for _, v := range slices.Concat(m.proto.Graph.ValueInfo, m.proto.Graph.Input, m.proto.Graph.Output) {
		declared[v.GetName()] = v
	}
	var outputs []*pb.ValueInfoProto
	for i, name := range names {
		t, known := types[name]
		switch {
		case !known:
			return nil, fmt.Errorf("cutting a model: it has no tensor %q", name)
		case slices.Contains(names[:i], name):
			return nil, fmt.Errorf("cutting a model: tensor %q is asked for twice", name)
		case declared[name] != nil:
			outputs = append(outputs, declared[name])
		case t == Undefined:
			outputs = append(outputs, &pb.ValueInfoProto{Name: &name}) // the runtime infers it
		default:
			outputs = append(outputs, valueInfo(name, t, nil))
		}
	}
	if len(outputs) == 0 {
		return nil, fmt.Errorf("cutting a model: no outputs are asked for")
	}
	cut := m.copy()
	cut.proto.Graph.Output = outputs
	prune(cut.proto.Graph)
	return cut, nil
}

// copy returns a model whose message and graph are its own, so that their lists can be replaced; the elements of the
// lists are shared.
func (m *Model) copy() *Model {
	c := *m
	c.proto = shallow(m.proto)
	c.proto.Graph = shallow(m.proto.Graph)
	return &c
}

// shallow copies the top of a message, with fields that the schema does not know.
func shallow[M proto.Message](src M) M {
	from := src.ProtoReflect()
	to := from.New()
	from.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		to.Set(f, v)
		return true
	})
	to.SetUnknown(from.GetUnknown())
	return to.Interface().(M)
}

// prune removes from a graph what its outputs do not need.
func prune(g *pb.GraphProto) {
	needed := map[string]bool{}
	for _, out := range g.Output {
		needed[out.GetName()] = true
	}
	var kept []*pb.NodeProto
	for _, n := range slices.Backward(g.Node) {
		if !slices.ContainsFunc(n.Output, func(out string) bool { return needed[out] }) {
			continue
		}
		kept = append(kept, n)
		for _, name := range reads(n) {
			needed[name] = true
		}
	}
	slices.Reverse(kept)
	g.Node = kept
	// What a kept node makes besides what is needed must keep its declaration.
	for _, n := range kept {
		for _, out := range n.Output {
			needed[out] = true
		}
	}
	g.Input = named(g.Input, needed)
	g.Initializer = named(g.Initializer, needed)
	g.ValueInfo = named(g.ValueInfo, needed)
	g.SparseInitializer = slices.DeleteFunc(slices.Clone(g.SparseInitializer), func(t *pb.SparseTensorProto) bool {
		return !needed[t.GetValues().GetName()]
	})
}

// named are the items whose name is needed, in a list of its own.
func named[T interface{ GetName() string }](list []T, needed map[string]bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(t T) bool { return !needed[t.GetName()] })
}
