package study

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

// writeChannel writes a model whose penultimate layer is a weighted sum of the red, green and blue
// planes of an image, averaged over squares of 4 x 4. It is invariant to any change that keeps the
// sum.
func writeChannel(t *testing.T, dir, name string, weights ...float32) {
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

// TestSTIRDiffersFromCKA checks two models that see one plane each. On grey images all planes are
// equal, so CKA is 1, but each model ignores what the other is sensitive to.
func TestSTIRDiffersFromCKA(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeChannel(t, dir, "red", 1, 0, 0)
	writeChannel(t, dir, "green", 0, 1, 0)
	writeChannel(t, dir, "grey", 0.5, 0.5, 0)
	writeChannel(t, dir, "constant", 0, 0, 0)
	s := parseIn(t, dir, `name: shared
data: [{name: grey, shapes: {n: 80, size: 16, channels: 1}}]
models:
  - {name: red, onnx: red.onnx}
  - {name: green, onnx: green.onnx}
  - {name: grey, onnx: grey.onnx}
  - {name: constant, onnx: constant.onnx}
measures:
  - stir: {between: [[red, red], [red, green], [green, red], [red, grey], [grey, red], [red, constant], [constant, red]], optimiser: adam}
`)
	r := mustRun(t, s, filepath.Join(dir, "run"), options(t))
	value := func(a, b, statistic string) float64 {
		for _, row := range r.Rows {
			if row.Model == a && row.OtherModel == b && row.Statistic == statistic && row.Variant == "" && row.Trial == 0 {
				return row.Value
			}
		}
		t.Errorf("no %s of %s given %s", statistic, b, a)
		return math.NaN()
	}
	for _, c := range []struct {
		a, b, statistic string
		low, high       float64
		why             string
	}{
		{"red", "red", "stir", 0.99, 1, "a model shares its own invariances"},
		{"red", "green", "cka", 0.999, 1, "both see the data alike"},
		{"green", "red", "cka", 0.999, 1, "both see the data alike"},
		{"red", "green", "stir", 0, 0.4, "what red disregards is all that green looks at"},
		{"green", "red", "stir", 0, 0.4, "what green disregards is all that red looks at"},
		{"red", "grey", "stir", 0.4, 0.95, "grey looks at half of what red disregards"},
		{"red", "constant", "stir", 1, 1, "a constant model shares every invariance"},
		{"constant", "red", "stir", 0, 0.4, "and the reverse does not hold"},
		{"red", "constant", "cka", 0, 0, "a constant representation is like no other"},
	} {
		if got := value(c.a, c.b, c.statistic); !(got >= c.low-1e-9 && got <= c.high+1e-9) {
			t.Errorf("%s of %s given %s is %v, not within %v and %v: %s", c.statistic, c.b, c.a, got, c.low, c.high, c.why)
		}
	}
	for _, row := range r.Rows {
		if row.Model == "red" && row.Statistic == "representation-distance" && !(row.Value < 0.1) {
			t.Errorf("inversions of red end at a distance of %v", row.Value)
		}
		if row.Statistic == "stir" && (row.Depth == scores.NoDepth || row.OtherLayer == "") {
			t.Errorf("a score without its layers: %+v", row)
		}
	}
}

func TestRobustAccuracyInAStudy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	text := strings.Replace(studyText, "measures: [accuracy, effective-invariance: {per-class: true}, prediction-divergence, distance, seis]",
		"measures: [robust-accuracy: {images: 40, steps: 3, radius: 0.5}]", 1)
	r := mustRun(t, parseIn(t, dir, text), filepath.Join(dir, "run"), options(t))
	value := map[string]float64{}
	for _, row := range r.Rows {
		value[row.Statistic] = row.Value
		if row.N != 40 || row.Layer != "" || row.OtherModel != "" || row.Transform != "" {
			t.Errorf("the row %+v", row)
		}
	}
	if len(r.Rows) != 2 || !(value["robust"] < value["clean"]) {
		t.Errorf("%d rows: %v", len(r.Rows), value)
	}
}
