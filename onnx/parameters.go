package onnx

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// Weights lists the float32 initializers, in the order of the file.
func (m *Model) Weights() []Port {
	var list []Port
	for _, t := range m.proto.Graph.Initializer {
		if Type(t.GetDataType()) == Float {
			list = append(list, Port{Name: t.GetName(), Type: Float, Shape: fixed(t.Dims)})
		}
	}
	return list
}

func fixed(dims []int64) []Dim {
	shape := make([]Dim, len(dims))
	for i, d := range dims {
		shape[i].Size = int(d)
	}
	return shape
}

// Release returns a model in which the named initializers are inputs instead, after those that it has: their values are fed, as
// in training. WithWeights is the way back.
func (m *Model) Release(names ...string) (*Model, error) {
	out := m.copy()
	g := out.proto.Graph
	g.Input, g.Initializer = slices.Clone(g.Input), slices.Clone(g.Initializer)
	for _, name := range names {
		i := slices.IndexFunc(g.Initializer, func(t *pb.TensorProto) bool { return t.GetName() == name })
		if i < 0 {
			return nil, fmt.Errorf("releasing weights: the model has no initializer %q", name)
		}
		t := g.Initializer[i]
		g.Initializer = slices.Delete(g.Initializer, i, i+1)
		if !slices.ContainsFunc(g.Input, func(v *pb.ValueInfoProto) bool { return v.GetName() == name }) {
			g.Input = append(g.Input, valueInfo(name, Type(t.GetDataType()), fixed(t.Dims)))
		}
	}
	return out, nil
}

// WithWeights returns a model with other values: of initializers, or of inputs, which become initializers. A value has the
// shape of what it replaces.
func (m *Model) WithWeights(values map[string]tensor.Tensor) (*Model, error) {
	out := m.copy()
	g := out.proto.Graph
	g.Input, g.Initializer = slices.Clone(g.Input), slices.Clone(g.Initializer)
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t := values[name]
		at := slices.IndexFunc(g.Initializer, func(t *pb.TensorProto) bool { return t.GetName() == name })
		in := slices.IndexFunc(g.Input, func(v *pb.ValueInfoProto) bool { return v.GetName() == name })
		var shape []Dim
		switch {
		case at >= 0:
			shape = fixed(g.Initializer[at].Dims)
		case in >= 0:
			shape = ports(g.Input[in : in+1])[0].Shape
		default:
			return nil, fmt.Errorf("setting weights: the model has neither an initializer nor an input %q", name)
		}
		if !fits(t.Shape, shape) {
			return nil, fmt.Errorf("setting weights: %q has the shape %v, and the value %v", name, sizes(shape), t.Shape)
		}
		weights := floatProto(name, t)
		if at >= 0 {
			g.Initializer[at] = weights
			continue
		}
		g.Input = slices.Delete(g.Input, in, in+1)
		g.Initializer = append(g.Initializer, weights)
	}
	return out, nil
}

// fits reports whether a shape is one that dimensions, some of them free, allow.
func fits(shape []int, dims []Dim) bool {
	if len(shape) != len(dims) {
		return false
	}
	for i, d := range dims {
		if d.Size >= 0 && d.Size != shape[i] {
			return false
		}
	}
	return true
}

func sizes(dims []Dim) []int {
	out := make([]int, len(dims))
	for i, d := range dims {
		out[i] = d.Size
	}
	return out
}
