package onnx_test

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// scaled is y = w relu(x) in a graph of its own.
func scaled(t *testing.T, opset int, w float32) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(opset)
	x := b.Input("x", onnx.Float, -1, 2)
	b.Output("y", b.Mul(b.Const("w", tensor.Tensor{Shape: []int{1}, Data: []float32{w}}), b.Relu(x)))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestIncludeKeepsNamesApart(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 2)
	first := b.Include(scaled(t, 17, 2), map[string]onnx.Value{"x": x})
	second := b.Scope("again").Include(scaled(t, 17, 3), map[string]onnx.Value{"x": first[0]})
	third := b.Include(scaled(t, 17, 5), map[string]onnx.Value{"x": second[0]})
	b.Output("z", third[0])
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if first[0] != "y" || second[0] != "again/y" || third[0] != "y_1" {
		t.Errorf("the outputs are called %q, %q and %q", first[0], second[0], third[0])
	}
	for name, want := range map[string]float32{"w": 2, "again/w": 3, "w_1": 5} {
		w, err := m.Tensor(name)
		if err != nil || w.Data[0] != want {
			t.Errorf("weight %q is %v (%v), want %v", name, w.Data, err, want)
		}
	}
}

func TestIncludeErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model  *onnx.Model
		inputs map[string]onnx.Value
		want   string
	}{
		"opset":   {scaled(t, 16, 2), map[string]onnx.Value{"x": "x"}, "uses opset 16 and the graph 17"},
		"missing": {scaled(t, 17, 2), nil, `its input "x" is given no tensor`},
		"unknown": {scaled(t, 17, 2), map[string]onnx.Value{"x": "nothing"}, `its input "x" is given no tensor`},
	} {
		b := onnx.NewBuilder(17)
		b.Input("x", onnx.Float, -1, 2)
		b.Include(c.model, c.inputs)
		if err := b.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
