package onnx

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// Static is what is known about the tensors of a main graph before anything runs: types, shapes, the values of shape
// arithmetic, and constants. A tool that writes nodes for a graph asks it, so that what is fixed is written as a
// constant and only the rest is computed when the graph runs.
type Static struct {
	model     *Model
	types     map[string]Type
	shapes    map[string][]int
	values    map[string]*array
	constants map[string]*pb.TensorProto
}

// Static works out what is known about the tensors of the graph.
func (m *Model) Static() *Static {
	s := &Static{
		model: m, types: m.elementTypes(), shapes: map[string][]int{}, values: map[string]*array{},
		constants: map[string]*pb.TensorProto{},
	}
	for _, t := range m.proto.Graph.Initializer {
		s.constants[t.GetName()] = t
	}
	for _, n := range m.proto.Graph.Node {
		if t := AttrTensor(n, "value"); n.GetOpType() == "Constant" && t != nil && len(n.Output) == 1 {
			s.constants[n.Output[0]] = t
		}
	}
	// What two inferences agree on although their free dimensions have different sizes does not depend on those.
	one, other := m.infer(false), m.infer(true)
	free := map[[2]int]int{}
	for name, f := range one.facts {
		s.shapes[name] = agreed(f.layout.sizes(), other.facts[name].layout.sizes(), free)
		if a, b := f.value, other.facts[name].value; !f.data && a != nil && b != nil && same(a, b) {
			s.values[name] = a
		}
	}
	return s
}

// agreed is a shape of which two inferences have made one size each. Free extents are numbered from -2 down.
func agreed(a, b []int, free map[[2]int]int) []int {
	if a == nil || len(a) != len(b) {
		return nil
	}
	shape := make([]int, len(a))
	for i := range a {
		pair := [2]int{a[i], b[i]}
		switch {
		case a[i] < 0 || b[i] < 0:
			shape[i] = -1
		case a[i] == b[i]:
			shape[i] = a[i]
		default:
			if free[pair] == 0 {
				free[pair] = -2 - len(free)
			}
			shape[i] = free[pair]
		}
	}
	return shape
}

// same reports whether two arrays hold the same values, all of them known.
func same(a, b *array) bool {
	return slices.Equal(a.shape, b.shape) && slices.Equal(a.data, b.data)
}

// Type is the type of a tensor's elements, Undefined if it cannot be told.
func (s *Static) Type(name string) Type { return s.types[name] }

// Shape is the shape of a tensor, nil if not even its rank is known. A dimension that is not fixed is negative: -1 if
// nothing is known about it, and else a number that it shares with the dimensions that are always as long.
func (s *Static) Shape(name string) []int { return s.shapes[name] }

// Names are the names of all tensors, sorted.
func (s *Static) Names() []string { return slices.Sorted(maps.Keys(s.types)) }

// Has reports whether the graph has a tensor of that name.
func (s *Static) Has(name string) bool {
	_, ok := s.types[name]
	return ok
}

// Values are the elements of a small constant or of the result of shape arithmetic, where all of them are known.
func (s *Static) Values(name string) ([]float64, bool) {
	a, ok := s.values[name]
	if !ok {
		return nil, false
	}
	return a.data, true
}

// Ints is Values as integers.
func (s *Static) Ints(name string) ([]int, bool) {
	values, ok := s.Values(name)
	if !ok {
		return nil, false
	}
	list := make([]int, len(values))
	for i, v := range values {
		list[i] = int(max(math.MinInt64/2, min(math.MaxInt64/2, v)))
	}
	return list, true
}

// Constant reports whether a tensor is an initializer or the value of a Constant node.
func (s *Static) Constant(name string) bool { return s.constants[name] != nil }

// Weights is a copy of the values of a float32 constant whose data are in the file itself, not beside it.
func (s *Static) Weights(name string) (tensor.Tensor, bool) {
	t := s.constants[name]
	if t == nil || external(t) || Type(t.GetDataType()) != Float {
		return tensor.Tensor{}, false
	}
	v, err := floats(t)
	return v, err == nil
}

// Reads are the tensors that a node needs: its inputs, and what the graphs inside it take from around them.
func Reads(n *pb.NodeProto) []string { return reads(n) }

// Label is how an error names a node: by its name, or by what it makes, and its operator.
func Label(n *pb.NodeProto) string { return label(n) }

// Static works out what is known about the tensors of the graph as it is now.
func (b *Builder) Static() *Static { return b.model.Static() }

// Nodes are the nodes so far, each after those whose outputs it reads. They are shared: do not change them.
func (b *Builder) Nodes() []*pb.NodeProto { return slices.Clip(b.model.proto.Graph.Node) }

// InputLike declares an input of the type and shape of a tensor of the graph, as far as they are known.
func (b *Builder) InputLike(name string, v Value) Value {
	like, ok := b.Find(v)
	if !ok {
		b.fail("input %q is to be like %q, which does not exist", name, v)
	}
	if !b.take(name) {
		return ""
	}
	g := b.model.proto.Graph
	g.Input = append(g.Input, b.infoLike(name, like))
	return Value(name)
}

// OutputLike is Output with the shape declared that another tensor has, and the type.
func (b *Builder) OutputLike(name string, v, like Value) {
	b.Output(name, v)
	like, _ = b.Find(like)
	if b.err == nil {
		g := b.model.proto.Graph
		last := len(g.Output) - 1
		g.Output[last] = b.infoLike(g.Output[last].GetName(), like)
	}
}

// infoLike declares a tensor with the type and the shape of another. Free dimensions keep the names that the graph
// declares.
func (b *Builder) infoLike(name string, v Value) *pb.ValueInfoProto {
	for _, p := range slices.Concat(b.model.Inputs(), b.model.Outputs()) {
		if p.Name == string(v) && p.Shape != nil {
			return valueInfo(name, p.Type, p.Shape)
		}
	}
	s := b.Static()
	var dims []Dim
	if shape := s.Shape(string(v)); shape != nil {
		dims = make([]Dim, len(shape))
		for i, d := range shape {
			dims[i].Size = max(d, -1)
		}
	}
	return valueInfo(name, s.Type(string(v)), dims)
}

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

// Find is a tensor under the name that it has now, after Output may have renamed it; ok is false if there is none.
func (b *Builder) Find(v Value) (now Value, ok bool) {
	if renamed, is := b.renamed[v]; is {
		v = renamed
	}
	return v, b.tensors[string(v)]
}

// AddOutput is the i-th output of a node that is in the graph: an optional output that nobody has asked for so far gets
// a name. The node is the one that makes the tensor first.
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
		n = shallow(n)
		n.Output = append(slices.Clone(n.Output), make([]string, max(0, i+1-len(n.Output)))...)
		n.Output[i] = b.unique(b.tensors, fmt.Sprintf("%s:%d", first, i))
		b.own[n.Output[i]] = true
		b.model.proto.Graph.Node = slices.Clone(b.model.proto.Graph.Node)
		b.model.proto.Graph.Node[at] = n
		return Value(n.Output[i])
	}
	b.fail("no node makes %q first", first)
	return ""
}
