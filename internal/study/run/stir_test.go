package run_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

// writeWeightedRGB writes a model whose penultimate layer is a weighted sum of the red, green and
// blue planes of an image, averaged over squares of 4 x 4. It is invariant to any change that keeps
// the sum.
func writeWeightedRGB(t *testing.T, dir, name string, weights ...float32) {
	t.Helper()
	r := seed.Rand(7, name)
	readout := tensor.New(16, 5)
	for i := range readout.Data {
		readout.Data[i] = float32(r.NormFloat64())
	}
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 3, 16, 16)
	plane := b.Conv(x, b.Const("w", tensor.Tensor{Shape: []int{1, 3, 1, 1}, Data: weights}), "", nil)
	pooled := b.Op("AveragePool", onnx.Attrs{"kernel_shape": []int{4, 4}, "strides": []int{4, 4}}, plane)
	b.Output("logits", b.Gemm(b.Flatten(pooled, 1), b.Const("v", readout), b.Const("c", tensor.New(5)), nil))
	testmodel.Save(t, filepath.Join(dir, name+".onnx"), b)
}

// TestSTIRDiffersFromCKA compares models that read different planes of an image by STIR (shared
// invariances, package stir) and CKA (centred kernel alignment). On grey images all planes are
// equal, so CKA is 1. But each of two models that read one plane is invariant to the plane that the
// other reads, so STIR is small. For STIR of b given a, inversion (gradient descent on noise) finds
// images that a represents as it does the data, and b's representations of both are compared.
func TestSTIRDiffersFromCKA(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeWeightedRGB(t, dir, "red", 1, 0, 0)
	writeWeightedRGB(t, dir, "green", 0, 1, 0)
	writeWeightedRGB(t, dir, "grey", 0.5, 0.5, 0)
	writeWeightedRGB(t, dir, "constant", 0, 0, 0)
	s := studytest.Parse(t, dir, `name: shared
data: [{name: grey, shapes: {n: 80, size: 16, channels: 1}}]
models:
  - {name: red, onnx: red.onnx}
  - {name: green, onnx: green.onnx}
  - {name: grey, onnx: grey.onnx}
  - {name: constant, onnx: constant.onnx}
measures:
  - stir: {between: [[red, red], [red, green], [green, red], [red, grey], [grey, red], [red, constant], [constant, red]], optimiser: adam}
`)
	r := studytest.Run(t, s, filepath.Join(dir, "run"), studytest.Options(t))
	value := func(a, b, statistic string) float64 {
		for _, row := range r.Rows {
			if row.Model == a && row.OtherModel == b && row.Statistic == statistic && row.Variant == "" && row.Trial == 0 {
				return row.Value
			}
		}
		t.Errorf("there is no %s of %s given %s", statistic, b, a)
		return math.NaN()
	}
	for _, c := range []struct {
		a, b, statistic string
		low, high       float64
		why             string
	}{
		{"red", "red", "stir", 0.99, 1, "a model has all its own invariances"},
		{"red", "green", "cka", 0.999, 1, "the planes of the data are equal"},
		{"green", "red", "cka", 0.999, 1, "the planes of the data are equal"},
		{"red", "green", "stir", 0, 0.4, "red is invariant to the plane that green reads"},
		{"green", "red", "stir", 0, 0.4, "green is invariant to the plane that red reads"},
		{"red", "grey", "stir", 0.4, 0.95, "half of what grey reads is the green plane, to which red is invariant"},
		{"red", "constant", "stir", 1, 1, "a constant model has every invariance"},
		{"constant", "red", "stir", 0, 0.4, "red does not have every invariance"},
		{"red", "constant", "cka", 0, 0, "CKA with a constant representation is 0"},
	} {
		if got := value(c.a, c.b, c.statistic); !(got >= c.low-1e-9 && got <= c.high+1e-9) {
			t.Errorf("%s of %s given %s is %v, not within %v and %v: %s", c.statistic, c.b, c.a, got, c.low, c.high, c.why)
		}
	}
	reached := false
	for _, row := range r.Rows {
		if row.Model == "red" && row.Statistic == "representation-distance" {
			reached = true
			if !(row.Value < 0.1) {
				t.Errorf("the representations that inversion reaches for red differ from those of the data by %v, want less than 0.1", row.Value)
			}
		}
		if row.Statistic == "stir" && (row.Depth == scores.NoDepth || row.OtherLayer == "") {
			t.Errorf("a score without its layers: %+v", row)
		}
	}
	if !reached {
		t.Error("no representation distance of red")
	}
}

// TestRobustAccuracyInAStudy checks that a study with robust-accuracy has two scores of the model:
// the accuracy on clean (unchanged) images, and a lower one on adversarial images. The study is
// studytest.Text with this measure only.
func TestRobustAccuracyInAStudy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	text := strings.Replace(studytest.Text, "measures: [accuracy, effective-invariance: {per-class: true}, prediction-divergence, distance, seis]",
		"measures: [robust-accuracy: {images: 40, steps: 3, radius: 0.5}]", 1)
	r := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "run"), studytest.Options(t))
	value := map[string]float64{}
	for _, row := range r.Rows {
		value[row.Statistic] = row.Value
		if row.N != 40 || row.Layer != "" || row.OtherModel != "" || row.Transform != "" {
			t.Errorf("the row is %+v, want 40 images, and no layer, other model or transformation", row)
		}
	}
	if len(r.Rows) != 2 || !(value["robust"] < value["clean"]) {
		t.Errorf("%d rows with the values %v, want 2, robust below clean", len(r.Rows), value)
	}
}
