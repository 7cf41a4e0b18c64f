package rewrite

import (
	"fmt"
	"maps"
	"slices"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/internal/pbutil"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// WeightsAsInputs makes named initializers inputs without values, so that training can vary them.
// WithWeights is the inverse. Unknown names are errors.
func WeightsAsInputs(m *onnx.Model, names ...string) (*onnx.Model, error) {
	g := pbutil.Shallow(m.Proto().Graph)
	g.Input, g.Initializer = slices.Clone(g.Input), slices.Clone(g.Initializer)
	for _, name := range names {
		i := slices.IndexFunc(g.Initializer, func(t *pb.TensorProto) bool { return t.GetName() == name })
		if i < 0 {
			return nil, fmt.Errorf("making weights inputs: the model has no initializer %q", name)
		}
		t := g.Initializer[i]
		g.Initializer = slices.Delete(g.Initializer, i, i+1)
		if !slices.ContainsFunc(g.Input, func(v *pb.ValueInfoProto) bool { return v.GetName() == name }) {
			g.Input = append(g.Input, onnx.ValueInfo{Name: name, Type: onnx.Type(t.GetDataType()), Shape: onnx.Dims(t.Dims)}.Proto())
		}
	}
	return m.WithGraph(g), nil
}

// WithWeights gives initializers, or inputs, which become initializers, values. Unknown names,
// other shapes and types other than float32 are errors.
func WithWeights(m *onnx.Model, values map[string]tensor.Tensor) (*onnx.Model, error) {
	g := pbutil.Shallow(m.Proto().Graph)
	g.Input, g.Initializer = slices.Clone(g.Input), slices.Clone(g.Initializer)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		t := values[name]
		at := slices.IndexFunc(g.Initializer, func(t *pb.TensorProto) bool { return t.GetName() == name })
		in := slices.IndexFunc(g.Input, func(v *pb.ValueInfoProto) bool { return v.GetName() == name })
		var old onnx.ValueInfo
		switch {
		case at >= 0:
			old = onnx.ValueInfo{Type: onnx.Type(g.Initializer[at].GetDataType()), Shape: onnx.Dims(g.Initializer[at].Dims)}
		case in >= 0:
			old = onnx.ValueInfoOf(g.Input[in])
		default:
			return nil, fmt.Errorf("setting weights: the model has neither an initializer nor an input %q", name)
		}
		if old.Type != onnx.Float {
			return nil, fmt.Errorf("setting weights: %q has elements of type %v, want float32", name, old.Type)
		}
		if !fits(t.Shape, old.Shape) {
			return nil, fmt.Errorf("setting weights: %q has the shape %v, and the value %v", name, old.Sizes(), t.Shape)
		}
		weights := onnx.TensorProto(name, t)
		if at >= 0 {
			g.Initializer[at] = weights
			continue
		}
		g.Input = slices.Delete(g.Input, in, in+1)
		g.Initializer = append(g.Initializer, weights)
	}
	return m.WithGraph(g), nil
}

// fits reports whether a shape agrees with declared dimensions, some of which may be dynamic.
func fits(shape []int, dims []onnx.Dim) bool {
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
