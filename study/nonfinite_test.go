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

const nonFiniteText = `name: nonfinite
seed: 3
data: [{name: shapes, shapes: {n: 60, size: 16, seed: 2}}]
models: [{name: m, onnx: m.onnx, layers: [good, bad]}]
transforms: [{name: quarter, rotate: {values: [90, 180]}}]
measures: [distance, seis]
`

// writeNonFinite writes a model whose layer bad is NaN and whose layer good is finite.
func writeNonFinite(t *testing.T, dir string) {
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 3, 16, 16)
	w := func(poison float32) tensor.Tensor {
		out := tensor.New(4, 3, 3, 3)
		r := seed.Rand(1, "w")
		for i := range out.Data {
			out.Data[i] = float32(r.NormFloat64())
		}
		out.Data[0] += poison
		return out
	}
	pads := onnx.Attrs{"pads": []int{1, 1, 1, 1}}
	zero := tensor.New(4)
	b.Output("good", b.Conv(x, b.Const("w", w(0)), b.Const("b", zero), pads))
	b.Output("bad", b.Conv(x, b.Const("v", w(float32(math.NaN()))), b.Const("c", zero), pads))
	testmodel.Save(t, filepath.Join(dir, "m.onnx"), b)
}

// TestNonFiniteLayerIsLostAlone checks that NaN in a layer fails that layer only, in a whole run
// and in shards.
func TestNonFiniteLayerIsLostAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeNonFinite(t, dir)
	o := options(t)
	var warned []string
	o.Warn = func(text string) { warned = append(warned, text) }
	check := func(rows []scores.Row) {
		t.Helper()
		values := map[string]int{}
		for _, r := range rows {
			switch {
			case r.Layer == "bad" && (!math.IsNaN(r.Value) || r.Parameter != "" && !strings.Contains(r.Warning, "NaN or infinity in the activations")):
				t.Errorf("%s %s of bad at %q is %v: %q", r.Measure, r.Statistic, r.Parameter, r.Value, r.Warning)
			case r.Layer == "good" && math.IsNaN(r.Value):
				t.Errorf("%s %s of good at %q is NaN: %q", r.Measure, r.Statistic, r.Parameter, r.Warning)
			}
			values[r.Layer]++
		}
		if values["good"] == 0 || values["bad"] == 0 {
			t.Errorf("rows of %v", values)
		}
	}
	whole := mustRun(t, parseIn(t, dir, nonFiniteText), filepath.Join(dir, "whole"), o)
	check(whole.Rows)
	if len(warned) != 1 || !strings.Contains(warned[0], "layer bad of model m") {
		t.Errorf("the warnings are %q", warned)
	}
	out := filepath.Join(dir, "shards")
	for i := 1; i <= 2; i++ {
		o.Shard = Shard{Index: i, Of: 2}
		mustRun(t, parseIn(t, dir, nonFiniteText), out, o)
	}
	o.Shard = Shard{}
	merged, err := Merge(t.Context(), parseIn(t, dir, nonFiniteText), []string{out}, o)
	if err != nil {
		t.Fatal(err)
	}
	check(merged.Rows)

	alone := strings.Replace(nonFiniteText, "[good, bad]", "[bad]", 1)
	if _, f := failures(t, parseIn(t, dir, alone), filepath.Join(dir, "alone"), o); len(f.Failed) != 4 {
		t.Errorf("without another layer there are %d failures", len(f.Failed))
	}
}
