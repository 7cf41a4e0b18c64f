package model_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// TestIncludeEqualsSession checks that a model that Include adds to a graph computes the same as a
// session of the model, for several types of inputs and several preprocessings. The model, network
// in inputs_test.go, doubles its input, and drawImage there draws random images. Range has the
// values for black and white.
func TestIncludeEqualsSession(t *testing.T) {
	rt := orttest.Load(t)
	rapid.Check(t, func(r *rapid.T) {
		f := form{
			typ:      rapid.SampledFrom([]onnx.Type{onnx.Float, onnx.Double}).Draw(r, "type"),
			layout:   rapid.SampledFrom([]string{"NCHW", "NHWC"}).Draw(r, "layout"),
			batch:    rapid.SampledFrom([]int{-1, 2}).Draw(r, "batch"), // -1: of any size
			channels: rapid.SampledFrom([]int{1, 3}).Draw(r, "channels"),
		}
		pre := rapid.SampledFrom([]model.Preprocess{
			{}, {Mean: []float32{0.5}, Std: []float32{0.25}}, {Range: [2]float32{-1, 1}}, {Range: [2]float32{0, 255}, Mean: []float32{100}},
		}).Draw(r, "preprocess")
		if f.channels == 3 && rapid.Bool().Draw(r, "bgr") {
			pre.Order, pre.Std = "bgr", []float32{0.5, 1, 2}
		}
		m, err := modeltest.Open(t, save(t, network(f)), model.Options{Layers: []string{"doubled"}, Preprocess: pre, Layout: f.layout})
		if err != nil {
			r.Fatal(err)
		}
		s, err := m.NewSession(m.Layers(), false)
		if err != nil {
			r.Fatal(err)
		}
		defer s.Close()
		buf, err := s.NewBuffers(2)
		if err != nil {
			r.Fatal(err)
		}
		x := tensor.New(2, f.channels, side, side)
		for i := range 2 {
			copy(x.At(i).Data, drawImage(r, f.channels).Data)
		}
		if err := s.Run(t.Context(), split(x), buf); err != nil {
			r.Fatal(err)
		}
		got := runIncluded(t, rt, m, x, "doubled")
		for i, want := range buf.Layer(0).Data {
			if math.Abs(float64(got[i]-want)) > 1e-5*math.Max(1, math.Abs(float64(want))) {
				r.Fatalf("value %d is %v, in a session %v", i, got[i], want)
			}
		}
	})
}

// runIncluded includes m in a graph that has images as its only input, and returns the values of
// the layer for the images x.
func runIncluded(t *testing.T, rt *ort.Runtime, m *model.Model, x tensor.Tensor, layer string) []float32 {
	t.Helper()
	b := onnx.NewBuilder(m.Opset())
	in := b.Input("images", onnx.Float, x.Shape...)
	values, err := m.Include(b.Scope("net"), in, x.Shape[0], layer)
	if err != nil {
		t.Fatal(err)
	}
	b.Output("out", b.Cast(values[0], onnx.Float))
	graph, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	session, err := rt.NewSession(graph, ort.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	images, err := ort.Wrap(rt, x.Data, x.Shape...)
	if err != nil {
		t.Fatal(err)
	}
	defer images.Close()
	out := []*ort.Value{nil}
	if err := session.Run(t.Context(), []*ort.Value{images}, out); err != nil {
		t.Fatal(err)
	}
	defer out[0].Close()
	return append([]float32(nil), ort.Data[float32](out[0])...)
}

// TestIncludeOtherInputs checks that Include makes constants of the inputs other than the images,
// and that it accepts only the batch size of a model that has a fixed one.
func TestIncludeOtherInputs(t *testing.T) {
	t.Parallel()
	rt := orttest.Load(t)
	path := save(t, func(b *onnx.Builder) {
		x := b.Input("x", onnx.Float, 2, 1, 2, 2)
		scale, flip := b.Input("scale", onnx.Float, 1), b.Input("flip", onnx.Bool, 2)
		y := b.Mul(b.Flatten(x, 1), scale)
		b.Output("y", b.Where(b.Unsqueeze(flip, 1), b.Neg(y), y))
	})
	m, err := modeltest.Open(t, path, model.Options{Layers: []string{"y"}, Input: "x", Inputs: map[string][]float64{"scale": {3}, "flip": {0, 1}}})
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.Tensor{Shape: []int{2, 1, 2, 2}, Data: []float32{1, 2, 3, 4, 5, 6, 7, 8}}
	got := runIncluded(t, rt, m, x, "y")
	for i, want := range []float32{3, 6, 9, 12, -15, -18, -21, -24} {
		if got[i] != want {
			t.Errorf("value %d is %v, want %v", i, got[i], want)
		}
	}
	b := onnx.NewBuilder(m.Opset())
	if _, err := m.Include(b, b.Input("images", onnx.Float, 3, 1, 2, 2), 3, "y"); err == nil {
		t.Error("Include with three images of a model with batch size 2: no error")
	}
}
