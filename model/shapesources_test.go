package model

import (
	"maps"
	"testing"

	"github.com/noether-ml/noether/onnx"
)

// TestShapeSources checks that tensors are traced back, through operators that keep the shape, to
// an earlier tensor of the same shape.
func TestShapeSources(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 3, 8, 8)
	first := b.Relu(x)
	second := b.Op("Sigmoid", nil, first)
	mean := b.ReduceMean(second, false, 2, 3)
	b.Output("y", b.Op("Softmax", nil, mean)) // no node reads it
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{string(first): "x", string(second): "x"}
	got := shapeSources(m)
	delete(got, string(m.Nodes()[3].Output[0])) // the builder may add an Identity for the output
	if !maps.Equal(got, want) {
		t.Errorf("sources = %v, want %v", got, want)
	}
}
