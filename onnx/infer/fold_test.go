package infer_test

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/infer"
	"github.com/noether-ml/noether/tensor"
)

// TestCastToBool checks that in constant folding a number cast to bool is false only if it is zero.
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

// TestPartOfShape checks that the operator Shape gives the sizes from its attribute start up to its
// attribute end, which is excluded. Negative ones count from the last axis.
func TestPartOfShape(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		attrs onnx.Attrs
		want  []int
	}{
		{nil, []int{2, 3, 5, 7}},
		{onnx.Attrs{"start": 1}, []int{3, 5, 7}},
		{onnx.Attrs{"start": 1, "end": 3}, []int{3, 5}},
		{onnx.Attrs{"start": -1}, []int{7}},
		{onnx.Attrs{"end": -2}, []int{2, 3}},
	} {
		b := onnx.NewBuilder(onnx.DefaultOpset)
		y := b.Op("Shape", c.attrs, b.Input("x", onnx.Float, 2, 3, 5, 7))
		if got, ok := infer.Analyze(b.Snapshot()).Ints(string(y)); !ok || !slices.Equal(got, c.want) {
			t.Errorf("Shape with %v of a tensor of 2 x 3 x 5 x 7: %v, %v, want %v", c.attrs, got, ok, c.want)
		}
	}
}
