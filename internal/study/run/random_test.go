package run_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
)

// TestRandomOperatorsGiveAWarning checks that a model with an operator that draws random numbers
// gives a warning, also in the record of the run (run.json). The study is studytest.Text
// with this model, one layer and one measure.
func TestRandomOperatorsGiveAWarning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := onnx.NewBuilder(17)
	x := b.Input("x", onnx.Float, -1, 3, 16, 16)
	noise := b.Op("RandomNormalLike", nil, x)
	b.Output("logits", b.Slice(b.Flatten(b.Add(x, noise), 1), 1, 0, 8, 1)) // 8 values of axis 1
	testmodel.Save(t, filepath.Join(dir, "noisy.onnx"), b)
	text := strings.NewReplacer("small", "noisy", `layers: ["op:Conv", "op:Relu", output]`, "layers: [output]",
		"effective-invariance: {per-class: true}, prediction-divergence, distance, seis", "effective-invariance").Replace(studytest.Text)
	o := studytest.Options(t)
	var warnings []string
	o.Warn = func(text string) { warnings = append(warnings, text) }
	r := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "run"), o)
	has := func(text string) bool {
		return strings.Contains(text, "RandomNormalLike") && strings.Contains(text, "random numbers")
	}
	if !slices.ContainsFunc(warnings, has) || !slices.ContainsFunc(r.Record.Warnings, has) {
		t.Errorf("warnings %q, in the record %q; want one of RandomNormalLike in both", warnings, r.Record.Warnings)
	}
}
