package infer_test

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/tensor"
)

// A number cast to bool is false only if it is zero.
func TestCastToBool(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Const("x", tensor.Tensor{Shape: []int{4}, Data: []float32{0, 0.5, -2, 1}})
	y := b.Cast(b.Cast(x, onnx.Bool), onnx.Int64)
	got, ok := infer.Analyze(b.Snapshot()).Ints(string(y))
	if want := []int{0, 1, 1, 1}; !ok || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, ok, want)
	}
}
