package run_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// TestEstimateCountsTheWork checks that an estimate counts the work of a run in one pass (a reading
// of all samples) or in several, and that nothing is left to count after the run.
func TestEstimateCountsTheWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	out := filepath.Join(dir, "run")
	estimate := func(littleMemory bool) study.Cost {
		s := studytest.Parse(t, dir, studytest.Text)
		if littleMemory {
			s.Memory = 1 // byte
		}
		p, err := study.NewPlan(t.Context(), s, studytest.Options(t))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		costs, err := study.Estimate(t.Context(), p, out, studytest.Options(t))
		if err != nil {
			t.Fatal(err)
		}
		if len(costs) == 0 {
			return study.Cost{}
		}
		c := costs[0]
		if sum := c.Open + c.Read + c.Engine + c.Measure + c.Score + c.Save; len(costs) != 1 || c.Total != sum {
			t.Errorf("%d costs, want 1; the total is %v, want the sum of its parts, %v", len(costs), c.Total, sum)
		}
		if c.Read <= 0 || c.Engine <= 0 || c.Measure <= 0 || c.Score <= 0 || c.Peak <= c.Bytes {
			t.Errorf("a part is missing: %+v", c)
		}
		return c
	}
	one, many := estimate(false), estimate(true)
	// studytest.Text has 150 images, each clean (not transformed) and under three
	// angles.
	if one.Passes != 1 || one.Samples != 150 || one.Forwards != 150*4 {
		t.Errorf("the cost is %+v", one)
	}
	if many.Passes <= one.Passes || many.Layers != one.Layers || many.Cells != one.Cells || many.Forwards <= one.Forwards {
		t.Errorf("in several passes the cost is %+v, in one %+v", many, one)
	}
	studytest.Run(t, studytest.Parse(t, dir, studytest.Text), out, studytest.Options(t))
	if done := estimate(false); done != (study.Cost{}) {
		t.Errorf("work that remains after the run: %+v, want %+v", done, (study.Cost{}))
	}
}

// TestEstimateCountsSavesOfWholePass checks the estimate of a run that may save at any time: it
// allows for saves during the whole of a pass, so their time is that of the pass, rounded down to
// whole saves. A cell is one measure under one transformation value.
func TestEstimateCountsSavesOfWholePass(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	o.SaveInterval, o.SaveFraction = time.Nanosecond, 1e9 // no bound on the share of time for saving
	text, _, _ := strings.Cut(studytest.Text, "measures:")
	p, err := study.NewPlan(t.Context(), studytest.Parse(t, dir, text+"measures: [effective-invariance]\n"), o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	costs, err := study.Estimate(t.Context(), p, filepath.Join(dir, "run"), o)
	if err != nil || len(costs) != 1 || costs[0].Passes != 1 {
		t.Fatal(costs, err)
	}
	const recordTime = 5 * time.Millisecond // the estimate for writing the record of a cell, as in package run
	c := costs[0]
	pass, saves := c.Read+c.Engine+c.Measure+c.Score, c.Save-time.Duration(c.Cells)*recordTime
	if saves > pass || saves < pass/2 { // rounding down to whole saves, at least one, takes less than half
		t.Errorf("saves take %v, the pass %v: %+v", saves, pass, c)
	}
}
