package onnx_test

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/pb"
	"github.com/noether-ml/noether/tensor"
)

// TestRandomNodes checks that RandomNodes finds the nodes that draw random numbers, also in the
// branch of an If. The inputs of Dropout are data, ratio and training_mode: it is random unless
// training_mode is absent or the constant false, or ratio the constant 0. Operators of other
// domains are not known.
func TestRandomNodes(t *testing.T) {
	t.Parallel()
	node := func(op, name string, inputs ...string) *pb.NodeProto {
		return &pb.NodeProto{OpType: &op, Name: &name, Input: inputs, Output: []string{name + "_out"}}
	}
	flag := func(name string, v byte) *pb.TensorProto {
		return &pb.TensorProto{Name: &name, DataType: new(int32(pb.TensorProto_BOOL)), RawData: []byte{v}}
	}
	branch := &pb.GraphProto{Node: []*pb.NodeProto{node("Bernoulli", "inner", "x")}}
	ifNode := node("If", "if", "x")
	ifNode.Attribute = []*pb.AttributeProto{{Name: new("then_branch"), Type: pb.AttributeProto_GRAPH.Enum(), G: branch}}
	foreign := node("RandomNormal", "foreign")
	foreign.Domain = new("com.example")
	half := onnx.TensorProto("half", tensor.Tensor{Data: []float32{0.5}})
	zero := &pb.TensorProto{Name: new("zero"), DataType: new(int32(pb.TensorProto_DOUBLE)), RawData: []byte{0, 0, 0, 0, 0, 0, 0, 0x80}}
	listed := &pb.TensorProto{Name: new("listed"), DataType: new(int32(pb.TensorProto_FLOAT)), FloatData: []float32{0}}
	constant := node("Constant", "constant")
	constant.Output = []string{"made"}
	constant.Attribute = []*pb.AttributeProto{{Name: new("value_float"), Type: pb.AttributeProto_FLOAT.Enum(), F: new(float32(0))}}
	attribute := node("Dropout", "ratio as attribute, which never drops", "x")
	attribute.Attribute = []*pb.AttributeProto{{Name: new("ratio"), Type: pb.AttributeProto_FLOAT.Enum(), F: new(float32(0.5))}}
	m := changedModel(t, func(p *pb.ModelProto) {
		p.Graph.Initializer = append(p.Graph.Initializer, flag("yes", 1), flag("no", 0), half, zero, listed)
		p.Graph.Node = append(p.Graph.Node,
			node("RandomNormalLike", "noise", "x"), node("Multinomial", "draw", "x"), ifNode, foreign,
			node("Dropout", "default", "x"), node("Dropout", "off", "x", "", "no"),
			node("Dropout", "ratio 0", "x", "zero", "yes"), node("Dropout", "ratio -0 as a list", "x", "listed", "x"),
			constant, node("Dropout", "ratio of a node", "x", "made", "yes"), attribute,
			node("Dropout", "on", "x", "half", "yes"), node("Dropout", "computed", "x", "", "x"))
	})
	want := []string{`node "noise" (RandomNormalLike)`, `node "draw" (Multinomial)`, `node "on" (Dropout)`, `node "computed" (Dropout)`, `node "inner" (Bernoulli)`}
	if got := m.RandomNodes(); !slices.Equal(got, want) {
		t.Errorf("random nodes %q, want %q", got, want)
	}
}

// changedModel returns the model small of model_test.go, y = relu(x w + 1), after a change to its
// protobuf message. The result is not checked.
func changedModel(t *testing.T, change func(p *pb.ModelProto)) *onnx.Model {
	t.Helper()
	m, err := onnx.Parse(changed(t, func(*pb.ModelProto) {}))
	if err != nil {
		t.Fatal(err)
	}
	p := m.Proto()
	change(p)
	return m.WithProto(p)
}
