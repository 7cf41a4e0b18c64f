package run

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/results"
	"github.com/noether-ml/noether/measure"
)

// longSave is the duration above which the user is warned that the save at the end of a pass takes
// long.
const longSave = 2 * time.Second

// saveAfter saves the states of a pass, the accumulators of its unfinished cells, after the pass
// ended early with err. It returns err, or the error of saving if that fails. If err is itself a
// failure to save, it does not save again.
func (r *runner) saveAfter(err error, p *plan.Pass) error {
	if results.IsSaveError(err) {
		return err
	}
	if wait := r.timer.cost(r.unsavedBytes(p)); wait >= longSave {
		r.Options.Warnf("saving unfinished work, which may take up to %s; if the program is killed meanwhile, what was done since %s is lost",
			wait.Round(time.Second), r.timer.last.Format(time.TimeOnly))
	}
	if saving := r.save(context.Background(), p); saving != nil {
		return saving
	}
	return err
}

// currentStore returns the store of the current pass, or nil if the run has no folder.
func (r *runner) currentStore() measure.Store {
	if r.store == nil {
		return nil
	}
	return r.store
}

// saveIncomplete saves the finished tasks of cells that later passes complete.
func (r *runner) saveIncomplete(p *plan.Pass) error {
	if slices.ContainsFunc(p.AllTasks(), func(t *plan.Task) bool { return !t.Cell.Done && !t.Cell.Failed }) {
		return r.save(context.Background(), p)
	}
	return nil
}

// saveIfDue saves the states of the pass if the timer says that a save is due, and cancels the save
// if it takes too long. The record of the run is written at every interval, so that other programs
// see that the run goes on. Before the first save of large states it measures the speed of the
// disk: the timer assumes saveSpeed until then, and on a faster disk would wait longer than
// necessary.
func (r *runner) saveIfDue(p *plan.Pass) error {
	bytes := r.unsavedBytes(p)
	if !r.timer.due(bytes) && r.timer.speedTestDue(bytes) {
		took, err := r.Folder.TimeWrite(speedTestBytes)
		if err != nil {
			return results.SaveError(err)
		}
		r.timer.speedTested(speedTestBytes, took)
		r.Log.Debug("disk timed", "bytes", int64(speedTestBytes), "seconds", took.Seconds())
	}
	switch {
	case r.timer.due(bytes):
		ctx, cancel := context.WithTimeout(context.Background(), r.timer.limit())
		defer cancel()
		return r.save(ctx, p)
	case r.timer.now().Sub(r.recorded) < r.timer.interval:
		return nil
	}
	defer r.Stats.During(telemetry.Saving)()
	return r.record()
}

// record writes the record of the run, run.json, and study.yaml. With Options.Only it writes
// nothing.
func (r *runner) record() error {
	r.recorded = r.timer.now()
	return results.SaveError(r.WriteProgress())
}

// unsavedBytes returns an upper bound on the bytes that save would write for a pass.
func (r *runner) unsavedBytes(p *plan.Pass) (sum int64) {
	for _, t := range p.AllTasks() {
		if !t.Cell.Done && !t.Cell.Failed && t.Scored == nil && t.Cell.HasUnsaved() {
			sum += t.FullCost // bytes of the accumulator, with those in the store
		}
	}
	return sum
}

// save writes the state of every unfinished cell of the pass that has changed since its last save,
// until the deadline of the context. A cell that is not saved by then keeps its earlier state.
func (r *runner) save(ctx context.Context, p *plan.Pass) error {
	defer r.Stats.During(telemetry.Saving)()
	start, bytes := r.timer.now(), r.unsavedBytes(p)
	saved := map[*plan.Cell]bool{}
	for _, t := range p.AllTasks() {
		if saved[t.Cell] || t.Cell.Done || t.Cell.Failed || !t.Cell.HasUnsaved() {
			continue
		}
		saved[t.Cell] = true
		switch err := r.SaveCell(ctx, t.Cell, r.accs); {
		case errors.Is(err, context.DeadlineExceeded):
			r.timer.cancelled(start, bytes)
			r.Log.Debug("saving states was given up", "bytes", bytes, "seconds", r.timer.last.Sub(start).Seconds())
			return r.record()
		case err != nil:
			return results.SaveError(err)
		}
	}
	if err := r.record(); err != nil {
		return err
	}
	r.timer.saved(start, bytes)
	r.Log.Debug("states saved", "bytes", bytes, "seconds", r.timer.last.Sub(start).Seconds())
	return nil
}
