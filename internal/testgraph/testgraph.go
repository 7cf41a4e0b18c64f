// Package testgraph generates random ONNX graphs, valid or not, for property tests of code that
// must handle any graph.
package testgraph

import (
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// Random returns a random graph that may be invalid. Its nodes have any of the operators with any
// attributes and inputs. "x", "tokens" and "ids" are graph inputs (-1: a dimension of any size),
// "w" and "m" weights, and "y" is the output. The value "" is an input that is left out.
func Random(t *rapid.T, operators []string) *onnx.Model {
	b := onnx.NewBuilder(rapid.SampledFrom([]int{9, 12, 13, 18}).Draw(t, "opset"))
	number := rapid.IntRange(-3, 5)
	numbers := rapid.SliceOfN(number, 0, 5)
	values := []onnx.Value{
		b.Input("x", onnx.Float, -1, 4, 6, 6), b.Input("tokens", onnx.Float, -1, 5, -1), b.Input("ids", onnx.Int64, 2, -1),
		b.Const("w", tensor.New(4, 4, 3, 3)), b.Const("m", tensor.New(6, 2)), b.Scalar(2), "",
	}
	for range rapid.IntRange(1, 3).Draw(t, "lists") {
		values = append(values, b.Ints(numbers.Draw(t, "list")...), b.Int(number.Draw(t, "int")))
	}
	for range rapid.IntRange(1, 30).Draw(t, "nodes") {
		attrs := onnx.Attrs{}
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"axis", "keepdims", "transA", "transB", "to", "group",
			"blocksize", "start", "end", "k", "hidden_size", "allowzero", "ceil_mode", "noop_with_empty_axes", "fmod"}), rapid.ID).Draw(t, "names") {
			attrs[name] = number.Draw(t, name)
		}
		for _, name := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"axes", "perm", "split", "starts", "ends", "pads",
			"strides", "dilations", "kernel_shape", "output_padding", "output_shape", "shape"}), rapid.ID).Draw(t, "lists") {
			attrs[name] = numbers.Draw(t, name)
		}
		if rapid.Bool().Draw(t, "texts") {
			attrs["equation"] = rapid.SampledFrom([]string{"ij,jk->ik", "bchw->bhwc", "...i->i", "", "->", "i,->"}).Draw(t, "equation")
			attrs["auto_pad"] = "SAME_UPPER"
		}
		op := rapid.SampledFrom(operators).Draw(t, "op")
		inputs := rapid.SliceOfN(rapid.SampledFrom(values), 0, 4).Draw(t, "inputs")
		values = append(values, b.Ops(op, rapid.IntRange(1, 3).Draw(t, "outputs"), attrs, inputs...)...)
	}
	b.Output("y", values[len(values)-1])
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	// Declare wrong shapes for some tensors.
	p := proto.Clone(m.Proto()).(*pb.ModelProto)
	for _, n := range p.Graph.Node {
		if rapid.IntRange(0, 3).Draw(t, "declared") > 0 {
			continue
		}
		shape := &pb.TensorShapeProto{}
		for _, size := range numbers.Draw(t, "shape") {
			shape.Dim = append(shape.Dim, &pb.TensorShapeProto_Dimension{Value: &pb.TensorShapeProto_Dimension_DimValue{DimValue: int64(size)}})
		}
		declared := &pb.TypeProto_Tensor{ElemType: new(int32(onnx.Float)), Shape: shape}
		p.Graph.ValueInfo = append(p.Graph.ValueInfo, &pb.ValueInfoProto{
			Name: &n.Output[0], Type: &pb.TypeProto{Value: &pb.TypeProto_TensorType{TensorType: declared}},
		})
	}
	data, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if m, err = onnx.Parse(data); err != nil {
		t.Fatal(err)
	}
	return m
}
