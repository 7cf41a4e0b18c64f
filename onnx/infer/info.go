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

// Info holds what is known about a main graph without running it: types, shapes, constants, and
// values of shape arithmetic.
type Info struct {
	model     *onnx.Model // for the values of weights
	types     map[string]onnx.Type
	shapes    map[string][]int
	values    map[string]*array // of small constants and of results of shape arithmetic
	constants map[string]*pb.TensorProto
}

// Analyze analyses the main graph of a model.
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
	// Results that agree do not depend on the sizes assumed for free dimensions.
	first, second := infer(m, nil, withTypicalSizes), infer(m, nil, withDistinctSizes)
	free := map[[2]int]int{}
	for name, f := range first.facts {
		s.shapes[name] = commonShape(f.layout.sizes(), second.facts[name].layout.sizes(), free)
		a, b := f.value, second.facts[name].value
		if !f.dependsOnInput && a != nil && b != nil && // unknown elements, NaN, are not equal
			slices.Equal(a.shape, b.shape) && slices.Equal(a.data, b.data) {
			s.values[name] = a
		}
	}
	return s
}

// commonShape returns what two inferences' shapes have in common. A dimension that differs is free,
// numbered from -2 down by its pair of sizes.
func commonShape(a, b []int, free map[[2]int]int) []int {
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

// Type returns the element type of a tensor, onnx.Undefined if it is unknown.
func (s *Info) Type(name string) onnx.Type { return s.types[name] }

// Shape returns the shape of a tensor, nil if its rank is unknown. Free dimensions are negative:
// -1, or equal numbers below for dimensions that are always equal.
func (s *Info) Shape(name string) []int { return s.shapes[name] }

// Names returns the names of all tensors, sorted.
func (s *Info) Names() []string { return slices.Sorted(maps.Keys(s.types)) }

// Has reports whether the graph has a tensor of that name.
func (s *Info) Has(name string) bool {
	_, ok := s.types[name]
	return ok
}

// Values returns the elements of a small constant or of a result of shape arithmetic. ok is false
// unless all of them are known.
func (s *Info) Values(name string) (values []float64, ok bool) {
	a, ok := s.values[name]
	if !ok {
		return nil, false
	}
	return a.data, true
}

// Ints returns Values as integers, limited to plus or minus 2^62.
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

// Weights returns a copy of a float32 constant in the model file itself, and false for other
// tensors.
func (s *Info) Weights(name string) (tensor.Tensor, bool) {
	t := s.constants[name]
	if t == nil || pbutil.External(t) || onnx.Type(t.GetDataType()) != onnx.Float {
		return tensor.Tensor{}, false
	}
	v, err := s.model.Tensor(name)
	return v, err == nil
}
