package model_test

import (
	"math"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// TestLayersOfTheSameElements reads layers that differ in shape only. They share their memory,
// whichever of them are read, in any order, also for batches of fewer images; layers with other
// elements do not.
func TestLayersOfTheSameElements(t *testing.T) {
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, 3, 4, 4)
	maps := b.Relu(x)
	rows := b.Reshape(maps, -1, 12, 4)
	tokens := b.Transpose(rows, 0, 2, 1)
	flat := b.Op("Flatten", nil, rows)
	squeezed := b.Squeeze(b.Unsqueeze(flat, 1), 1)
	mean := b.ReduceMean(tokens, false, 2)
	b.Output("y", b.Softmax(b.Add(squeezed, b.MatMul(mean, b.Full(0.1, 4, 48))), 1))
	path := testmodel.Save(t, t.TempDir()+"/net.onnx", b)
	m, err := modeltest.Open(t, path, model.Options{Layers: []string{"all"}})
	if err != nil {
		t.Fatal(err)
	}
	images := make([]tensor.Tensor, 5)
	for i := range images {
		images[i] = tensor.New(3, 4, 4)
		for k := range images[i].Data {
			images[i].Data[k] = float32((k*7+i*3)%11)/10 - 0.3
		}
	}
	all := m.Layers()
	read := func(layers []tensor.Layer) []tensor.Tensor {
		t.Helper()
		s, err := m.NewSession(layers, true)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		buf, err := s.NewBuffers(3)
		if err != nil {
			t.Fatal(err)
		}
		out := make([]tensor.Tensor, len(layers))
		for at := 0; at < len(images); at += 3 {
			if err := s.Run(t.Context(), images[at:min(at+3, len(images))], buf); err != nil {
				t.Fatal(err)
			}
			for i := range layers {
				l := buf.Layer(i)
				out[i].Shape = append([]int{at + l.Shape[0]}, l.Shape[1:]...)
				out[i].Data = append(out[i].Data, l.Data...)
			}
		}
		shared := 0
		for i := range layers {
			for j := range i {
				if &buf.Layer(i).Data[0] == &buf.Layer(j).Data[0] {
					shared++
				}
			}
		}
		if want := map[int]int{len(all): 10, 2: 1}[len(layers)]; shared != want {
			t.Errorf("%d of %d layers: %d pairs share memory, want %d", len(layers), len(all), shared, want)
		}
		return out
	}
	alone := map[string]tensor.Tensor{}
	for _, l := range all {
		alone[l.Name] = read([]tensor.Layer{l})[0]
	}
	backwards := slices.Clone(all)
	slices.Reverse(backwards)
	last := func(op string) tensor.Layer {
		return all[slices.IndexFunc(all, func(l tensor.Layer) bool { return l.Op == op })]
	}
	for _, layers := range [][]tensor.Layer{all, backwards, {last("Flatten"), last("Relu")}} {
		for i, got := range read(layers) {
			want := alone[layers[i].Name]
			if !slices.Equal(got.Shape, want.Shape) {
				t.Fatalf("%s has the shape %v, want %v", layers[i].Name, got.Shape, want.Shape)
			}
			for k, v := range got.Data {
				if math.Abs(float64(v-want.Data[k])) > 1e-6 {
					t.Fatalf("%s: value %d is %g, want %g", layers[i].Name, k, v, want.Data[k])
				}
			}
		}
	}
}
