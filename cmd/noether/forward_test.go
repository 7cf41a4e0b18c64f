package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/onnx"
)

// TestForward computes an output and an intermediate tensor of a model for two batches.
func TestForward(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 3)
	y := b.Relu(x)
	b.Output("z", b.Add(y, y))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	data, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(dir, "m.onnx")
	if err := os.WriteFile(model, data, 0o666); err != nil {
		t.Fatal(err)
	}
	value := func(i int) float32 { return float32(i) - 2 }
	inputs := []string{writeNPY(t, filepath.Join(dir, "a.npy"), value, 1, 3), writeNPY(t, filepath.Join(dir, "b.npy"), value, 2, 3)}
	request, err := json.Marshal(forwardRequest{Model: model, Inputs: inputs, Tensors: []string{"z", string(y)}, Out: dir})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "request.json")
	if err := os.WriteFile(path, request, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := execute(t.Context(), []string{"forward", path}); err != nil {
		t.Fatal(err)
	}
	for name, factor := range map[string]float64{"1-0.npy": 2, "1-1.npy": 1} {
		f, err := dataset.OpenArrayFile(t.Context(), filepath.Join(dir, name), "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		got := make([]float64, 6)
		if err := f.Rows([]int{0, 1}, got); err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if want := factor * max(float64(value(i)), 0); v != want {
				t.Errorf("%s: value %d is %v, want %v", name, i, v, want)
			}
		}
	}
}
