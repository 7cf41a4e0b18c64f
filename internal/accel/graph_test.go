package accel

import (
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// TestIsScalar checks that only a tensor that always has one element is a scalar. Free dimensions,
// also those that are known to be equal to others, may have any size.
func TestIsScalar(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(16)
	free := b.Input("free", onnx.Float, -1)
	equal := b.Relu(free)
	one := b.Const("one", tensor.New(1, 1))
	rank0 := b.Scalar(3)
	vector := b.Const("vector", tensor.New(2))
	b.Output("y", b.Add(b.Mul(equal, rank0), b.Mul(one, vector)))
	g := newGraph(b)
	for tensor, want := range map[onnx.Value]bool{free: false, equal: false, vector: false, one: true, rank0: true} {
		if got := g.isScalar(string(tensor)); got != want {
			t.Errorf("%s of shape %v: %v, want %v", tensor, g.static.Shape(string(tensor)), got, want)
		}
	}
}
