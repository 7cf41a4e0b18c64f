// Package testmodel writes small models for tests.
package testmodel

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// Options are the options of Write.
type Options struct {
	Classes int     // 0: 8
	Batch   int     // batch size; 0: any
	Size    int     // side of the images, a multiple of 2; 0: 16
	Poison  float32 // added to one weight of the convolution, for instance NaN
}

// Write writes NAME.onnx into a folder and returns its path. The model is a convolution "conv" of
// stride 2 over images of 3 x 16 x 16, a ReLU, and a linear layer "logits". The name seeds the
// weights.
func Write(t testing.TB, dir, name string, o Options) string {
	t.Helper()
	if o.Classes == 0 {
		o.Classes = 8
	}
	if o.Size == 0 {
		o.Size = 16
	}
	batch := o.Batch
	if batch == 0 {
		batch = -1
	}
	r := seed.Rand(7, name)
	random := func(shape ...int) tensor.Tensor {
		w := tensor.New(shape...)
		for i := range w.Data {
			w.Data[i] = float32(r.NormFloat64() * 0.5)
		}
		return w
	}
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, batch, 3, o.Size, o.Size)
	w := random(6, 3, 3, 3)
	w.Data[0] += o.Poison
	conv := b.Conv(x, b.Const("w", w), b.Const("b", random(6)), onnx.Attrs{"pads": []int{1, 1, 1, 1}, "strides": []int{2, 2}})
	b.Output("conv", conv)
	flat := b.Flatten(b.Relu("conv"), 1)
	b.Output("logits", b.Gemm(flat, b.Const("v", random(6*(o.Size/2)*(o.Size/2), o.Classes)), b.Const("c", random(o.Classes)), nil))
	return Save(t, filepath.Join(dir, name+".onnx"), b, "logits")
}

// Save writes the graph of a builder to a file and returns its path. If outputs are given, the
// model has these outputs only.
func Save(t testing.TB, path string, b *onnx.Builder, outputs ...string) string {
	t.Helper()
	m, err := b.Model()
	if err == nil && len(outputs) > 0 {
		m, err = rewrite.WithOutputs(m, outputs)
	}
	if err != nil {
		t.Fatal(err)
	}
	raw, err := m.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}
