package run

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/noether-ml/noether/internal/study/internal/guard"
	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/results"
)

// score computes the scores of the tasks of a pass. score writes the records of the cells whose
// tasks then all have scores.
func (r *runner) score(ctx context.Context, p *plan.Pass) error {
	ctx, span := telemetry.Span(ctx, "score")
	defer span.End()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // stops the other workers on an error
	tasks, err := r.unscored(p)
	if err != nil {
		return err
	}
	r.Options.ShareBLAS(r.parallel.scoring)
	r.progress.Scored, r.progress.ToScore = 0, len(tasks)
	outcomes := r.compute(ctx, tasks, min(r.Options.Workers(), len(tasks)))
	for r.progress.Scored < len(tasks) {
		start := time.Now()
		ready, err := await(ctx, outcomes)
		if err != nil {
			return err
		}
		r.Stats.Add(telemetry.Scoring, start)
		if err := r.storeScores(p, ready); err != nil {
			return err
		}
		r.progress.Scored += len(ready)
		r.report()
	}
	return r.saveIncomplete(p) // keeps the scores of cells that have tasks in later passes
}

// unscored returns the tasks of a pass that have no scores yet. It completes the cells whose tasks
// all have scores already: a task whose layer was dropped during the pass, because its activations
// held NaN or infinity, got undefined scores then (see plan.Task.DropNonFinite).
func (r *runner) unscored(p *plan.Pass) (out []*plan.Task, err error) {
	var scored []*plan.Cell
	for _, t := range p.AllTasks() {
		switch {
		case t.Scored == nil:
			out = append(out, t)
		case !t.Cell.Done && !t.Cell.Failed && !slices.Contains(scored, t.Cell):
			scored = append(scored, t.Cell)
		}
	}
	return out, r.Complete(scored...)
}

// An outcome is the result of scoring a task.
type outcome struct {
	task   *plan.Task
	scored *plan.TaskScores
	err    error
}

// compute scores tasks on the given number of goroutines and sends the outcome of each.
func (r *runner) compute(ctx context.Context, tasks []*plan.Task, workers int) <-chan outcome {
	outcomes := make(chan outcome, len(tasks)) // buffered for all tasks, so that no worker blocks after score returns
	type job struct {
		task *plan.Task
		acc  plan.Accumulator
	}
	jobs := make(chan job, len(tasks)) // holds no reference to an accumulator, which is large, once its job is taken
	for _, t := range tasks {
		jobs <- job{t, r.accs[t]}
	}
	close(jobs)
	for range workers {
		go func() {
			for j := range jobs {
				if ctx.Err() != nil {
					return
				}
				var scored *plan.TaskScores
				err := guard.Run(func() (err error) {
					scored, err = j.task.Compute(j.acc)
					return err
				})
				outcomes <- outcome{j.task, scored, err}
			}
		}()
	}
	return outcomes
}

// await waits for an outcome, and returns it with those that came while the ones before it were
// stored, up to 64: what is written together waits for the disk once.
func await(ctx context.Context, outcomes <-chan outcome) ([]outcome, error) {
	var ready []outcome
	select {
	case o := <-outcomes:
		ready = append(ready, o)
	case <-ctx.Done(): // the eigenproblem of a large layer takes a minute: do not wait for it
		return nil, context.Cause(ctx)
	}
	for len(ready) < 64 {
		select {
		case o := <-outcomes:
			ready = append(ready, o)
		default:
			return ready, nil
		}
	}
	return ready, nil
}

// storeScores stores the scores of tasks, and writes the records of the cells whose tasks then all
// have scores.
func (r *runner) storeScores(p *plan.Pass, outcomes []outcome) error {
	var cells []*plan.Cell
	for _, o := range outcomes {
		if err := r.takeScores(o); err != nil {
			return err
		}
		if c := o.task.Cell; !slices.Contains(cells, c) {
			cells = append(cells, c)
		}
	}
	cells = slices.DeleteFunc(cells, func(c *plan.Cell) bool { return c.Failed })
	if err := r.Complete(cells...); err != nil {
		return err
	}
	return r.saveIfDue(p)
}

// takeScores gives a task its scores, or lets its cell fail.
func (r *runner) takeScores(o outcome) error {
	delete(r.accs, o.task)
	cell := o.task.Cell
	if results.IsSaveError(o.err) {
		return o.err
	}
	if o.err == nil && o.scored.NonFinite != "" {
		if o.task.IsLast() {
			o.err = o.task.Explain(errors.New(o.scored.NonFinite))
		}
		o.task.NonFinite = true
	}
	if o.err != nil {
		if err := r.failAndFree(cell, o.task.FirstLayer(), nil, o.err); err != nil {
			return err
		}
	}
	if !cell.Failed {
		o.task.Scored = o.scored
	}
	return nil
}
