package run

import (
	"github.com/noether-ml/noether/study/plan"
	"github.com/noether-ml/noether/study/rundir"
)

// A runner is a run in progress.
type runner struct {
	*rundir.Writer
	progress plan.Progress
	accs     map[*plan.Task]plan.Accumulator // of the current pass
	store    *rundir.Store                   // of the current pass
	timer    *saveTimer
}

// giveUp fails a cell and frees its accumulators.
func (r *runner) giveUp(c *plan.Cell, layer string, inputs []string, cause error) error {
	err := r.FailCell(c, layer, inputs, cause)
	if c.Failed {
		for _, t := range c.Tasks {
			delete(r.accs, t)
		}
	}
	return err
}
