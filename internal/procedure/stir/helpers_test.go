package stir_test

import (
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/modeltest"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/procedure/stir"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// build opens a model of grey images of 6 x 6 pixels (side is 6) whose output "z" is the value that
// graph builds from the input x.
func build(t testing.TB, name string, graph func(b *onnx.Builder, x onnx.Value) onnx.Value) procedure.Subject {
	t.Helper()
	return buildOf(t, name, onnx.DefaultOpset, side, graph)
}

// buildOf is build with an ONNX operator set and images of side x side pixels.
func buildOf(t testing.TB, name string, opset, side int, graph func(b *onnx.Builder, x onnx.Value) onnx.Value) procedure.Subject {
	t.Helper()
	b := onnx.NewBuilder(opset)
	b.Output("z", graph(b, b.Input("x", onnx.Float, -1, 1, side, side)))
	path := testmodel.Save(t, filepath.Join(t.TempDir(), name+".onnx"), b)
	return open(t, name, path, "z")
}

// open opens a model with the given layers.
func open(t testing.TB, name, path string, layers ...string) procedure.Subject {
	t.Helper()
	m, err := modeltest.Open(t, path, model.Options{Layers: layers})
	if err != nil {
		t.Fatal(err)
	}
	return procedure.Subject{Name: name, Model: m, Layers: m.Layers()}
}

// linear returns a model that maps the pixels with indices start to end - 1 linearly to d numbers.
// The weights are random, drawn from a generator keyed by name.
func linear(name string, start, end, d int) func(b *onnx.Builder, x onnx.Value) onnx.Value {
	return func(b *onnx.Builder, x onnx.Value) onnx.Value {
		r := seed.Rand(1, name)
		w := tensor.New(side*side, d)
		for i := start * d; i < end*d; i++ {
			w.Data[i] = float32(r.NormFloat64())
		}
		return b.MatMul(b.Flatten(x, 1), b.Const("w", w))
	}
}

// constant is a model whose outputs are all 2.
func constant(b *onnx.Builder, x onnx.Value) onnx.Value {
	return b.Add(b.Mul(b.Flatten(x, 1), b.Scalar(0)), b.Scalar(2))
}

// random returns n images of uniform noise in [0, 1).
func random(n int) tensor.Tensor {
	t, r := tensor.New(n, 1, side, side), seed.Rand(5)
	for i := range t.Data {
		t.Data[i] = r.Float32()
	}
	return t
}

// adam returns the default settings of STIR (see between) with the optimiser adam.
func adam() stir.Settings {
	s := stir.Defaults()
	s.Optimiser = "adam"
	return s
}

// between returns the scores of STIR(b | a), which asks whether b shares the invariances of a: how
// similar are b's outputs for the images x and for other images that a maps to the same outputs?
func between(t testing.TB, a, b procedure.Subject, x tensor.Tensor, s stir.Settings) []measure.PairScore {
	t.Helper()
	scores, err := stir.Compare(t.Context(), a, b, x, s, 1) // 1: seed
	if err != nil {
		t.Fatal(err)
	}
	return scores
}

// value returns a statistic, in the given variant, of the first pair of layers that has it. A
// variant is for instance a way to find the other images; "" is the default.
func value(t testing.TB, scores []measure.PairScore, statistic, variant string) measure.Score {
	t.Helper()
	for _, s := range scores {
		if s.Statistic == statistic && s.Variant == variant {
			return s.Score
		}
	}
	t.Fatalf("no score %s %s among %v", statistic, variant, scores)
	return measure.Score{}
}

// resnet opens a ResNet that was trained on CIFAR-10, with its penultimate layer.
func resnet(t testing.TB, name string) procedure.Subject {
	t.Helper()
	m, err := modeltest.Open(t, testdata.Path(t, "models", name+"-cifar10.onnx"), model.Options{Layers: []string{"penultimate"},
		Preprocess: model.Preprocess{Mean: []float32{0.485, 0.456, 0.406}, Std: []float32{0.229, 0.224, 0.225}}})
	if err != nil {
		t.Fatal(err)
	}
	return procedure.Subject{Name: name, Model: m, Layers: m.Layers()}
}

// cifar returns the first n images of a CIFAR-10 test batch.
func cifar(t testing.TB, n int) tensor.Tensor {
	t.Helper()
	src, err := dataset.OpenCIFAR10(t.Context(), dataset.CIFAROptions{Paths: []string{testdata.Path(t, "cifar10", "test_batch.bin")}})
	if err != nil {
		t.Fatal(err)
	}
	defer dataset.Close(src)
	x := tensor.New(n, 3, 32, 32)
	for i := range n {
		s, err := src.At(t.Context(), i, dataset.Frame{}) // the zero Frame: not resized
		if err != nil {
			t.Fatal(err)
		}
		copy(x.At(i).Data, s.Input.Data)
	}
	return x
}
