package onnx_test

import (
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// Parse returns an error, or a model whose methods do not panic.
func FuzzParse(f *testing.F) {
	m := small(f)
	// The model y = relu(x w + 1) with y or with two intermediate tensors (x w, and x w + 1) as
	// outputs; each also truncated.
	for _, names := range [][]string{{"y"}, {"MatMul", "Add"}} {
		cut, err := rewrite.WithOutputs(m, names)
		if err != nil {
			f.Fatal(err)
		}
		data, err := cut.Bytes()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add(shapeArithmetic(f))
	f.Add([]byte("not a model"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnx.Parse(data)
		if err != nil {
			return
		}
		layers := m.Layers()
		_, _ = m.Select("penultimate")
		m.Inputs()
		m.Outputs()
		elements := int64(0) // of the weights of type float32
		for _, w := range m.Proto().Graph.Initializer {
			if onnx.Type(w.GetDataType()) == onnx.Float {
				weight, err := m.Tensor(w.GetName())
				if err != nil {
					t.Errorf("a weight of a model that Parse accepts cannot be read: %v", err)
				}
				elements += int64(len(weight.Data))
			}
		}
		if n := m.Parameters(); n < elements {
			t.Errorf("Parameters is %d, but %d elements can be read", n, elements)
		}
		if len(layers) > 0 {
			cut, err := rewrite.WithOutputs(m, []string{layers[len(layers)-1].Name})
			if err != nil {
				t.Fatalf("the last layer cannot be an output: %v", err)
			}
			m = cut
		}
		out, err := m.Bytes()
		if err != nil {
			return // protobuf cannot encode names that are not UTF-8
		}
		if _, err := onnx.Parse(out); err != nil && len(layers) > 0 {
			t.Errorf("a serialised model cannot be parsed: %v", err)
		}
	})
}

// shapeArithmetic returns a serialised model that computes the shapes of tensors by nodes of many
// kinds, such as Shape, Gather, Slice, Concat and Range. The data type 7 is int64.
func shapeArithmetic(t testing.TB) []byte {
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, 4, 6, 6)
	x = b.Conv(x, b.Const("w", tensor.New(8, 4, 3, 3)), "", onnx.Attrs{"strides": []int{2, 2}, "pads": []int{1, 1, 1, 1}})
	shape := b.Shape(x)
	n := b.Gather(shape, b.Ints(0), 0)
	half := b.Div(b.Slice(shape, 0, 1, 2, 1), b.Ints(2))
	x = b.ReshapeTo(x, b.Concat(0, n, b.Ints(2), half, b.Ints(-1)))
	x = b.Transpose(x, 0, 3, 1, 2)
	x = b.Unsqueeze(b.Gather(x, b.Ints(1, 0), 1), 2)
	parts := b.Ops("Split", 2, onnx.Attrs{"axis": 1, "num_outputs": 2}, x)
	x = b.Expand(parts[0], b.Where(b.Op("Equal", nil, b.Shape(x), b.Ints(1)), b.Shape(x), b.Op("Cast", onnx.Attrs{"to": onnx.Int64}, b.Shape(x))))
	x = b.Op("Pad", nil, x, b.Op("ConstantOfShape", onnx.Attrs{"value": &pb.TensorProto{DataType: new(int32(7)), Dims: []int64{1}, Int64Data: []int64{1}}}, b.Ints(10)))
	x = b.Op("Einsum", onnx.Attrs{"equation": "abcde->aedcb"}, x)
	x = b.Op("Tile", nil, x, b.Op("Range", nil, b.Int(1), b.Int(6), b.Int(1)))
	b.Output("y", b.Flatten(b.ReduceMean(x, true, -1), 2))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	data, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return data
}
