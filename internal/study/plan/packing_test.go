package plan_test

import (
	"testing"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// TestPassesHoldEveryTaskOnce checks that every task is in exactly one pass over the data for any
// memory limit, and that there are never fewer forward passes with less memory. A cell is a measure
// for a model, a data set and a value of a transformation. A task is its part for one layer, or for
// the predictions. The study is studytest.Text.
func TestPassesHoldEveryTaskOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	p, err := study.NewPlan(t.Context(), studytest.Parse(t, dir, studytest.Text), studytest.Options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	want := 0
	for _, c := range p.Cells {
		want += len(c.Tasks)
	}
	var forwardsBefore int64 // with more memory
	for memory := int64(1 << 30); memory > 0; memory /= 4 {
		seen := map[*plan.Task]bool{}
		var forwards int64
		for _, pass := range plan.Passes(p.Cells, plan.Limits{Memory: memory, Cores: 2}, study.Shard{}) {
			forwards += pass.Forwards()
			for _, task := range pass.AllTasks() {
				if seen[task] {
					t.Fatalf("with %d bytes a task is in two passes", memory)
				}
				seen[task] = true
			}
		}
		if len(seen) != want {
			t.Errorf("with %d bytes %d of %d tasks are in passes", memory, len(seen), want)
		}
		if forwards < forwardsBefore {
			t.Errorf("with %d bytes there are %d forward passes, and with more memory %d", memory, forwards, forwardsBefore)
		}
		forwardsBefore = forwards
	}
}
