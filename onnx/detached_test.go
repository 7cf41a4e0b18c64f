package onnx_test

import (
	"bytes"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// TestDetached checks that Detached returns initializers of at least the given number of bytes
// apart from the serialised model, and does not change the model. The initializer "large" has 2048
// float32, which are 8192 bytes.
func TestDetached(t *testing.T) {
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, 1, 2048)
	large := make([]float32, 2048)
	for i := range large {
		large[i] = float32(i) - 0.5
	}
	b.Output("y", b.Add(b.Mul(x, b.Const("large", tensor.Tensor{Shape: []int{2048}, Data: large})), b.Scalar(3)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	before, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	short, weights, err := m.Detached(4096)
	if err != nil {
		t.Fatal(err)
	}
	if len(weights) != 1 || len(weights[0].Data) != 8192 || weights[0].Type != onnx.Float || len(weights[0].Shape) != 1 || weights[0].Shape[0] != 2048 {
		t.Fatalf("detached %+v", weights)
	}
	if len(short) > len(before)-8000 || // 8192 bytes less, and some for the reference to them
		!bytes.Contains(before, weights[0].Data) || bytes.Contains(short, weights[0].Data) {
		t.Errorf("the model has %d bytes without the weight, %d with it", len(short), len(before))
	}
	if after, err := m.Bytes(); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the model changed, %v", err)
	}
	if all, none, err := m.Detached(8193); err != nil || len(none) != 0 || !bytes.Equal(all, before) {
		t.Errorf("%d weights of at least 8193 bytes, %v", len(none), err)
	}
}
