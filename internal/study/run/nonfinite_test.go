package run_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

// nonFiniteText is a study with three measures. seis tells whether a layer keeps its spatial
// information under a rotation, and whether at the same positions. distance and similarity compare
// its activations before and after.
const nonFiniteText = `name: nonfinite
seed: 3
data: [{name: shapes, shapes: {n: 90, size: 16, seed: 2}}]
models: [{name: m, onnx: m.onnx, layers: [good, bad]}]
transforms: [{name: quarter, rotate: {values: [90, 180]}}]
measures: [distance, seis, similarity]
`

// writeNonFinite writes a model whose layer bad is NaN and whose layer good is finite.
func writeNonFinite(t *testing.T, dir string) {
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 3, 16, 16)
	w := func(added float32) tensor.Tensor { // random weights, with a number added to the first
		out := tensor.New(4, 3, 3, 3)
		r := seed.Rand(1, "w")
		for i := range out.Data {
			out.Data[i] = float32(r.NormFloat64())
		}
		out.Data[0] += added
		return out
	}
	pads := onnx.Attrs{"pads": []int{1, 1, 1, 1}}
	zero := tensor.New(4)
	b.Output("good", b.Conv(x, b.Const("w", w(0)), b.Const("b", zero), pads))
	b.Output("bad", b.Conv(x, b.Const("v", w(float32(math.NaN()))), b.Const("c", zero), pads))
	testmodel.Save(t, filepath.Join(dir, "m.onnx"), b)
}

// TestNonFiniteLayerFailsAlone checks that NaN in a layer fails that layer only, in a whole run and
// in two shards (parts of the samples) that are merged.
func TestNonFiniteLayerFailsAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeNonFinite(t, dir)
	o := studytest.Options(t)
	var warned []string
	o.Warn = func(text string) { warned = append(warned, text) }
	check := func(rows []scores.Row) {
		t.Helper()
		values := map[string]int{}
		for _, r := range rows {
			switch {
			// A row without a parameter is the mean over the angles.
			case r.Layer == "bad" && (!math.IsNaN(r.Value) || r.Parameter != "" && !strings.Contains(r.Warning, "NaN or infinity in the activations")):
				t.Errorf("%s %s of bad at %q is %v: %q", r.Measure, r.Statistic, r.Parameter, r.Value, r.Warning)
			case r.Layer == "good" && math.IsNaN(r.Value):
				t.Errorf("%s %s of good at %q is NaN: %q", r.Measure, r.Statistic, r.Parameter, r.Warning)
			}
			values[r.Layer]++
		}
		if values["good"] == 0 || values["bad"] == 0 {
			t.Errorf("numbers of rows by layer %v, want some of good and of bad", values)
		}
	}
	whole := studytest.Run(t, studytest.Parse(t, dir, nonFiniteText), filepath.Join(dir, "whole"), o)
	check(whole.Rows)
	ofLayer := slices.DeleteFunc(slices.Clone(warned), func(text string) bool { return strings.Contains(text, "is taken for a map") })
	if len(ofLayer) != 1 || !strings.Contains(ofLayer[0], "layer bad of model m") {
		t.Errorf("the warnings are %q", warned)
	}
	out := filepath.Join(dir, "shards")
	for i := 1; i <= 2; i++ {
		o.Shard = study.Shard{Index: i, Count: 2}
		studytest.Run(t, studytest.Parse(t, dir, nonFiniteText), out, o)
	}
	o.Shard = study.Shard{}
	merged, err := study.Merge(t.Context(), studytest.Parse(t, dir, nonFiniteText), []string{out}, o)
	if err != nil {
		t.Fatal(err)
	}
	check(merged.Rows)

	alone := strings.Replace(nonFiniteText, "[good, bad]", "[bad]", 1)
	// failures (failure_test.go) runs a study of which parts fail.
	if _, f := failures(t, studytest.Parse(t, dir, alone), filepath.Join(dir, "alone"), o); len(f.Failed) != 6 { // three measures under two angles
		t.Errorf("without another layer there are %d failures", len(f.Failed))
	}
}

// TestNonFiniteLayerFailsItsPairsAlone checks that NaN in a layer fails only the pairs of layers
// that contain it, in comparisons of two models and of the layers of one, in a whole run and in
// shards. stir compares which inputs two models represent alike; "layers: grid" takes every layer
// of the one with every layer of the other.
func TestNonFiniteLayerFailsItsPairsAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeNonFinite(t, dir)
	text := `name: nonfinite
seed: 3
data: [{name: shapes, shapes: {n: 90, size: 16, seed: 2}}]
models:
  - {name: m, onnx: m.onnx, layers: [good, bad]}
  - {name: n, onnx: m.onnx, layers: [good, bad]}
measures:
  - similarity: {between: [[m, n], [m, m]]}
  - stir: {between: [[m, n]], layers: grid, images: 20, steps: 3}
`
	o := studytest.Options(t)
	var warned []string
	o.Warn = func(text string) { warned = append(warned, text) }
	check := func(rows []scores.Row) {
		t.Helper()
		values := map[string]int{}
		for _, r := range rows {
			bad := r.Layer == "bad" || r.OtherLayer == "bad"
			if bad != math.IsNaN(r.Value) || bad && !strings.Contains(r.Warning, "NaN or infinity in the activations") {
				t.Errorf("%s %s of %s and %s is %v: %q", r.Measure, r.Statistic, r.Layer, r.OtherLayer, r.Value, r.Warning)
			}
			values[r.Measure+" "+r.OtherModel+" "+r.Layer+" "+r.OtherLayer]++
		}
		for _, pair := range []string{"similarity n", "similarity m", "stir n"} {
			for _, layers := range []string{" good good", " good bad", " bad good", " bad bad"} {
				if values[pair+layers] == 0 || values[pair+layers] != values[pair+" good good"] {
					t.Errorf("%d rows of %s, want %d as of the finite layers", values[pair+layers], pair+layers, values[pair+" good good"])
				}
			}
		}
	}
	check(studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "whole"), o).Rows)
	all := strings.Join(warned, "\n")
	for _, want := range []string{"layer bad of model m on shapes: NaN", "layer bad of model n on shapes: NaN", "the other layers are measured"} {
		if !strings.Contains(all, want) {
			t.Errorf("no warning with %q: %q", want, warned)
		}
	}
	out := filepath.Join(dir, "shards")
	for i := 1; i <= 2; i++ {
		o.Shard = study.Shard{Index: i, Count: 2}
		studytest.Run(t, studytest.Parse(t, dir, text), out, o)
	}
	o.Shard = study.Shard{}
	merged, err := study.Merge(t.Context(), studytest.Parse(t, dir, text), []string{out}, o)
	if err != nil {
		t.Fatal(err)
	}
	check(merged.Rows)

	alone := strings.Replace(text, "layers: [good, bad]}", "layers: [bad]}", 1)
	if _, f := failures(t, studytest.Parse(t, dir, alone), filepath.Join(dir, "alone"), o); len(f.Failed) != 3 { // two pairs of similarity, one of stir
		t.Errorf("where a model has no other layer there are %d failures", len(f.Failed))
	}
}
