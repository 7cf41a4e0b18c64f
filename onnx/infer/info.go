package infer

import (
	"maps"
	"math"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// Info is what is known about the tensors of a main graph before anything runs: types, shapes, the
// values of shape arithmetic, and constants. A tool that writes nodes for a graph asks it, so that
// what is fixed is written as a constant and only the rest is computed when the graph runs.
type Info struct {
	model     *onnx.Model
	types     map[string]onnx.Type
	shapes    map[string][]int
	values    map[string]*array
	constants map[string]*pb.TensorProto
}

// Analyze infers what is known about the tensors of the main graph of a model.
func Analyze(m *onnx.Model) *Info {
	s := &Info{
		model: m, types: m.ElementTypes(), shapes: map[string][]int{}, values: map[string]*array{},
		constants: map[string]*pb.TensorProto{},
	}
	for _, t := range m.Proto().Graph.Initializer {
		s.constants[t.GetName()] = t
	}
	for _, n := range m.Proto().Graph.Node {
		if t := onnx.AttrTensor(n, "value"); n.GetOpType() == "Constant" && t != nil && len(n.Output) == 1 {
			s.constants[n.Output[0]] = t
		}
	}
	// What two inferences agree on although their free dimensions have different sizes does not
	// depend on those.
	one, other := inferFacts(m, nil, false), inferFacts(m, nil, true)
	free := map[[2]int]int{}
	for name, f := range one.facts {
		s.shapes[name] = agreed(f.layout.sizes(), other.facts[name].layout.sizes(), free)
		if a, b := f.value, other.facts[name].value; !f.data && a != nil && b != nil && same(a, b) {
			s.values[name] = a
		}
	}
	return s
}

// agreed is a shape of which two inferences have made one size each. Free extents are numbered from
// -2 down.
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
func (s *Info) Type(name string) onnx.Type { return s.types[name] }

// Shape is the shape of a tensor, nil if not even its rank is known. A dimension that is not fixed
// is negative: -1 if nothing is known about it, and else a number that it shares with the
// dimensions that are always as long.
func (s *Info) Shape(name string) []int { return s.shapes[name] }

// Names are the names of all tensors, sorted.
func (s *Info) Names() []string { return slices.Sorted(maps.Keys(s.types)) }

// Has reports whether the graph has a tensor of that name.
func (s *Info) Has(name string) bool {
	_, ok := s.types[name]
	return ok
}

// Values are the elements of a small constant or of the result of shape arithmetic, where all of
// them are known.
func (s *Info) Values(name string) ([]float64, bool) {
	a, ok := s.values[name]
	if !ok {
		return nil, false
	}
	return a.data, true
}

// Ints is Values as integers.
func (s *Info) Ints(name string) ([]int, bool) {
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
func (s *Info) Constant(name string) bool { return s.constants[name] != nil }

// Weights is a copy of the values of a float32 constant whose data are in the file itself, not
// beside it.
func (s *Info) Weights(name string) (tensor.Tensor, bool) {
	t := s.constants[name]
	if t == nil || pbutil.External(t) || onnx.Type(t.GetDataType()) != onnx.Float {
		return tensor.Tensor{}, false
	}
	v, err := s.model.Tensor(name)
	return v, err == nil
}
