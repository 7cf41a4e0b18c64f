package run_test

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// TestDoubtsOnScores checks that what is doubtful about a model's outputs stands on each score that
// it concerns, and on no other: of predictions if nothing says that the outputs are classes, unless
// the data have labels of as many classes; of all if samples of a batch influence each other.
func TestDoubtsOnScores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	save := func(name string, classes int, mixes bool) {
		b := onnx.NewBuilder(17)
		r := rand.New(rand.NewPCG(1, 2))
		w := tensor.New(3*16*16, classes)
		for i := range w.Data {
			w.Data[i] = float32(r.NormFloat64())
		}
		z := b.MatMul(b.Reshape(b.Input("x", onnx.Float, -1, 3, 16, 16), -1, 3*16*16), b.Const("", w))
		if mixes {
			z = b.Sub(z, b.ReduceMean(z, true, 0))
		}
		b.Output("y", z)
		testmodel.Save(t, filepath.Join(dir, name+".onnx"), b)
	}
	save("nine", 9, false)
	save("eight", 8, false) // shapes have 8 classes
	save("mixes", 8, true)
	o := studytest.Options(t)
	r := studytest.Run(t, studytest.Parse(t, dir, `name: doubts
data: [{name: shapes, shapes: {n: 40, size: 16, seed: 2}}]
models:
  - {name: nine, onnx: nine.onnx, layers: output}
  - {name: eight, onnx: eight.onnx, layers: output}
  - {name: mixes, onnx: mixes.onnx, layers: output}
transforms: [{name: half, rotate: 180}]
measures: [effective-invariance, distance]
`), filepath.Join(dir, "run"), o)
	seen := map[string]bool{}
	for _, row := range r.Rows {
		seen[row.Model+" "+row.Measure] = true
		wantClasses := row.Model == "nine" && row.Measure == "effective-invariance"
		if got := strings.Contains(row.Warning, "set scores: logits if they do, or scores: none"); got != wantClasses {
			t.Errorf("%s of %s: warning %q", row.Measure, row.Model, row.Warning)
		}
		if got := strings.Contains(row.Warning, "the other samples of its batch"); got != (row.Model == "mixes") {
			t.Errorf("%s of %s: warning %q", row.Measure, row.Model, row.Warning)
		}
	}
	if len(seen) != 6 {
		t.Errorf("scores of %v", seen)
	}
}
