package study

import (
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/testmodel"
)

// TestEstimateCountsTheWork checks that an estimate counts the work of a run in one pass or
// several, and nothing after the run.
func TestEstimateCountsTheWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	out := filepath.Join(dir, "run")
	estimate := func(memory int64) Cost {
		s := parseIn(t, dir, studyText)
		if memory > 0 {
			s.Memory = 1
		}
		p, err := NewPlan(t.Context(), s, options(t))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		costs, err := Estimate(t.Context(), p, out, options(t))
		if err != nil {
			t.Fatal(err)
		}
		if len(costs) == 0 {
			return Cost{}
		}
		c := costs[0]
		if sum := c.Open + c.Read + c.Engine + c.Measure + c.Score + c.Save; len(costs) != 1 || c.Total != sum {
			t.Errorf("%d costs, in all %v of %v", len(costs), c.Total, sum)
		}
		if c.Read <= 0 || c.Engine <= 0 || c.Measure <= 0 || c.Score <= 0 || c.Peak <= c.Bytes {
			t.Errorf("a part is missing: %+v", c)
		}
		return c
	}
	one, many := estimate(0), estimate(1)
	if one.Passes != 1 || one.Samples != 150 || one.Forwards != 150*4 {
		t.Errorf("the cost is %+v", one)
	}
	if many.Passes <= one.Passes || many.Layers != one.Layers || many.Cells != one.Cells || many.Forwards <= one.Forwards {
		t.Errorf("in several passes %+v, in one %+v", many, one)
	}
	mustRun(t, parseIn(t, dir, studyText), out, options(t))
	if done := estimate(0); done != (Cost{}) {
		t.Errorf("work that remains after the run: %+v", done)
	}
}
