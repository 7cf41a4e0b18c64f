package ort_test

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
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
	got := ort.ShapeSources(m)
	delete(got, string(m.Nodes()[3].Output[0])) // the builder may add an Identity for the output
	if !maps.Equal(got, want) {
		t.Errorf("sources = %v, want %v", got, want)
	}
}

// TestShapesInOneOutput checks that the shapes of many tensors are read as one output of the
// engine, ONNX Runtime: the time to make a session grows with the number of its tensors times that
// of its outputs.
func TestShapesInOneOutput(t *testing.T) {
	t.Parallel()
	const nodes = 3 * ort.JoinedShapes
	b := onnx.NewBuilder(onnx.DefaultOpset)
	v := b.Input("x", onnx.Float, -1, 3, 8, 8)
	w := b.Const("w", tensor.New(3, 3, 1, 1))
	for range nodes {
		v = b.Op("Conv", nil, v, w)
	}
	b.Output("y", v)
	net, err := orttest.Load(t).OpenNetwork(testmodel.Save(t, filepath.Join(t.TempDir(), "m.onnx"), b), ort.NetworkOptions{})
	if err != nil {
		t.Fatal(err)
	}
	names := onnx.Names(net.Graph().Layers())
	feed := func(_ string, n int) (*engine.Array, error) { return engine.NewArray(engine.Float, n, 3, 8, 8), nil }
	outputs, sources, err := ort.ShapeOutputs(net, feed, names)
	if err != nil {
		t.Fatal(err)
	}
	if sources < nodes || outputs != 1 {
		t.Errorf("%d shapes of %d tensors in %d outputs, want one output", sources, len(names), outputs)
	}
}
