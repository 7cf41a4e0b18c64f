package study

import (
	"testing"

	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/study/plan"
)

// TestPassesHoldEveryTaskOnce checks that every task (a measure of a cell at one layer) is in
// exactly one pass for any memory limit, and that less memory never reduces forward passes.
func TestPassesHoldEveryTaskOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	p, err := NewPlan(t.Context(), parseIn(t, dir, studyText), options(t))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	want := 0
	for _, c := range p.Cells {
		want += len(c.Tasks)
	}
	var before int64
	for memory := int64(1 << 30); memory > 0; memory /= 4 {
		seen := map[*plan.Task]bool{}
		var forwards int64
		for _, pass := range plan.Passes(p.Cells, plan.Limits{Memory: memory, Cores: 2}, Shard{}) {
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
		if forwards < before {
			t.Errorf("with %d bytes there are %d forward passes, and with more memory %d", memory, forwards, before)
		}
		before = forwards
	}
}
