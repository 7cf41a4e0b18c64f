//go:build cgo

package rewrite_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// shapesOf runs a graph of withShapes on an input of zeros and returns the shapes that it computes.
// Verbatim: no node is fused or computed in advance.
func shapesOf(t *testing.T, rt *ort.Runtime, m *onnx.Model, names []string, input []int) ([][]int64, error) {
	t.Helper()
	s, err := rt.NewSession(m, ort.Options{Verbatim: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	x, err := rt.NewValue(onnx.Float, input...)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	out := make([]*ort.Value, len(names))
	if err := s.Run(t.Context(), []*ort.Value{x}, out); err != nil {
		return nil, err
	}
	shapes := make([][]int64, len(out))
	for i, v := range out {
		shapes[i] = append(shapes[i], ort.Data[int64](v)...)
		v.Close()
	}
	return shapes, nil
}

// withShapes returns a graph whose outputs are the shapes of all layers (float32 tensors that
// depend on the input), and the names of these outputs.
func withShapes(t *testing.T, m *onnx.Model) (*onnx.Model, []string) {
	t.Helper()
	b := onnx.Extend(m)
	var names []string
	for _, l := range m.Layers() {
		names = append(names, "shape of "+l.Name)
		b.Output(names[len(names)-1], b.Shape(onnx.Value(l.Name)))
	}
	out, err := b.Model()
	if err == nil {
		out, err = rewrite.WithOutputs(out, names)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out, names
}

// TestShapesOnlyKeepsShapes compares the shapes of all layers with those of the original graph.
// ShapesOnly makes a graph that computes other values with less memory and time: nodes that create
// zeros replace large weights.
func TestShapesOnlyKeepsShapes(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	for name, input := range map[string][]int{
		"cifar_resnet20": {2, 3, 32, 32}, "mobilenet_v3_small": {2, 3, 64, 64}, "squeezenet1_1": {1, 3, 64, 64}, "tiny_swin": {2, 3, 32, 32}, "tiny_vit": {2, 3, 32, 32},
	} {
		m, err := onnx.Read(testdata.Path(t, "nets", name, "model.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		full, names := withShapes(t, m)
		want, err := shapesOf(t, rt, full, names, input)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		reduced := rewrite.ShapesOnly(full)
		got, err := shapesOf(t, rt, reduced, names, input)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if len(reduced.Nodes()) <= len(full.Nodes()) {
			t.Errorf("%s: nothing was replaced", name)
		}
	}
}

func zeros(shape ...int) tensor.Tensor {
	return tensor.Tensor{Shape: shape, Data: make([]float32, tensor.Size(shape))}
}

// TestShapesOnlyContractions covers every operator that sums over a channel axis shared with its
// weights (a contraction). ShapesOnly makes it sum over one channel, which a Split takes from the
// input. The cases are opsets before and from 13 on (13 changed Split), weights that several nodes
// read, and a wrong number of channels.
func TestShapesOnlyContractions(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	const side = 200 // side x side elements are more than infer.MaxValues, so ShapesOnly replaces w
	for _, opset := range []int{11, 13, 18} {
		b := onnx.NewBuilder(opset)
		x := b.Input("x", onnx.Float, -1, -1)
		w := b.Const("w", zeros(side, side))
		y := b.Op("Gemm", onnx.Attrs{"transB": 1}, b.Relu(b.MatMul(x, w)), w)
		y = b.Add(b.Op("Gemm", nil, y, w), w) // the Add reads w without a contraction
		image := b.Reshape(y, 1, side, 10, -1)
		kernel := b.Const("k", zeros(15, side, 5, 5))
		back := b.Const("kt", zeros(15, side, 3, 3))
		b.Output("y", b.Op("ConvTranspose", onnx.Attrs{"strides": []int{2, 2}}, b.Op("Conv", nil, image, kernel), back))
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		full, names := withShapes(t, m)
		want, err := shapesOf(t, rt, full, names, []int{side, side})
		if err != nil {
			t.Fatal(err)
		}
		reduced := rewrite.ShapesOnly(full)
		got, err := shapesOf(t, rt, reduced, names, []int{side, side})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("opset %d: %s", opset, diff)
		}
		split := 0
		for _, n := range reduced.Nodes() {
			if n.GetOpType() == "Split" {
				split++
			}
		}
		if split != 5 { // for MatMul, two Gemm, Conv and ConvTranspose
			t.Errorf("opset %d: %d nodes sum over one channel, want 5", opset, split)
		}
		if _, err := shapesOf(t, rt, reduced, names, []int{side, side + 1}); err == nil {
			t.Errorf("opset %d: no error for an input of %d channels and weights for %d", opset, side+1, side)
		}
	}
}

// TestShapesOnlyProductOfWeights covers a product of two large weights, the first of which no other
// node reads.
func TestShapesOnlyProductOfWeights(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	const side = 200
	b := onnx.NewBuilder(18)
	product := b.MatMul(b.Const("v", zeros(side, side)), b.Const("w", zeros(side, side)))
	b.Output("y", b.MatMul(b.Input("x", onnx.Float, -1, side), product))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	full, names := withShapes(t, m)
	got, err := shapesOf(t, rt, rewrite.ShapesOnly(full), names, []int{3, side})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]int64{{3, side}}, got); diff != "" {
		t.Error(diff)
	}
}
