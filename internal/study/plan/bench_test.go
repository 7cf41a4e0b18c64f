package plan_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/testmodel"
)

// BenchmarkPlan measures parsing and planning a study, opening its model and data, and estimating
// the cost. The study has 1,000 values of a transformation and 100 trials (repetitions of every
// random draw), so 100,000 cells: a cell is one measure for one value in one trial.
func BenchmarkPlan(b *testing.B) {
	dir := b.TempDir()
	testmodel.Write(b, dir, "small", testmodel.Options{})
	var values []string
	for i := range 1000 {
		values = append(values, fmt.Sprint(float64(i+1)/10))
	}
	text := fmt.Sprintf(`name: cells
data: [{name: shapes, shapes: {n: 33, size: 16}}]
models: [{name: small, onnx: small.onnx, layers: [output]}]
transforms: [{name: turn, rotate: {values: [%s]}}]
trials: 100
measures: [distance]
`, strings.Join(values, ", "))
	o := study.Options{Runtime: orttest.Load(b)}
	for b.Loop() {
		s, err := study.Parse(filepath.Join(dir, "study.yaml"), []byte(text), nil)
		if err != nil {
			b.Fatal(err)
		}
		p, err := study.NewPlan(b.Context(), s, o)
		if err != nil {
			b.Fatal(err)
		}
		if len(p.Cells) != 100_000 {
			b.Fatalf("%d cells, want 100,000", len(p.Cells))
		}
		if _, err := study.Estimate(b.Context(), p, "", o); err != nil {
			b.Fatal(err)
		}
		p.Close()
	}
}
