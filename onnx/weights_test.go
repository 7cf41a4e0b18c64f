package onnx

import (
	"testing"

	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// TestWeightsInConstants checks that weights in Constant nodes are read as initializers.
func TestWeightsInConstants(t *testing.T) {
	t.Parallel()
	b := NewBuilder(17)
	x := b.Input("x", Float, -1, 2)
	b.Output("y", b.MatMul(x, b.Const("w", tensor.Tensor{Shape: []int{2, 3}, Data: []float32{1, 2, 3, 4, 5, 6}})))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	g := m.proto.Graph
	weight := g.Initializer[0]
	name, kind, typ, attribute := weight.GetName(), "Constant", pb.AttributeProto_TENSOR, "value"
	constant := &pb.NodeProto{OpType: &kind, Output: []string{name}, Attribute: []*pb.AttributeProto{{Name: &attribute, Type: &typ, T: weight}}}
	g.Node, g.Initializer = append([]*pb.NodeProto{constant}, g.Node...), nil
	data, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	read, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if n, w := read.Parameters(), read.Weights(); n != 6 || len(w) != 1 || w[0].Name != name {
		t.Errorf("%d parameters, weights %v; want 6, and %s", n, w, name)
	}
}
