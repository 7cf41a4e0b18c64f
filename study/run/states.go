package run

import (
	"slices"
	"time"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/study/internal/telemetry"
	"github.com/noether-ml/noether/study/plan"
	"github.com/noether-ml/noether/study/rundir"
)

// saveAfter saves a pass that ended early with err, unless err is a failure to save. If saving
// fails now, it returns that error instead of err.
func (r *runner) saveAfter(err error, p *plan.Pass) error {
	if rundir.IsSaveError(err) {
		return err
	}
	if saving := r.save(p); saving != nil {
		return saving
	}
	return err
}

// storeOf returns the store of the current pass, or nil if the run has no folder.
func (r *runner) storeOf() measure.Store {
	if r.store == nil {
		return nil
	}
	return r.store
}

// saveIncomplete saves the finished tasks of cells that later passes complete.
func (r *runner) saveIncomplete(p *plan.Pass) error {
	if slices.ContainsFunc(p.AllTasks(), func(t *plan.Task) bool { return !t.Cell.Done && !t.Cell.Failed }) {
		return r.save(p)
	}
	return nil
}

func (r *runner) saveIfDue(p *plan.Pass) error {
	every := r.Options.Every
	if every == 0 {
		every = time.Minute
	}
	if time.Since(r.saved) < every {
		return nil
	}
	return r.save(p)
}

// save writes the state of every unfinished cell of the pass.
func (r *runner) save(p *plan.Pass) error {
	defer r.Stats.During(telemetry.Saving)()
	saved := map[*plan.Cell]bool{}
	for _, t := range p.AllTasks() {
		if saved[t.Cell] || t.Cell.Done || t.Cell.Failed {
			continue
		}
		saved[t.Cell] = true
		if err := r.SaveCell(t.Cell, r.accs); err != nil {
			return rundir.SaveError(err)
		}
	}
	r.saved = time.Now()
	if err := r.WriteProgress(); err != nil {
		return rundir.SaveError(err)
	}
	return nil
}
