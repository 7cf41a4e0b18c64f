package study

import (
	"context"
	"slices"
	"time"
)

// score computes the scores of the pass's tasks and writes the record of every cell that is complete.
func (r *runner) score(ctx context.Context, p *pass) error {
	ctx, all := span(ctx, "score")
	defer all.End()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // so that the others stop where one fails
	tasks := p.all()
	workers := min(r.o.cores(), len(tasks))
	r.shareBLAS(workers)
	outcomes := r.compute(ctx, tasks, workers)
	for i := range tasks {
		var o outcome
		start := time.Now()
		select {
		case o = <-outcomes:
		case <-ctx.Done(): // the eigenproblem of a large layer takes a minute, and whoever stops a run will not wait
			return context.Cause(ctx)
		}
		r.stats.add(scoring, start)
		r.shareBLAS(min(workers, len(tasks)-1-i)) // the last layers take over the cores of those that are done
		if err := r.take(p, o); err != nil {
			return err
		}
	}
	return r.saveIncomplete(p)
}

// An outcome is what came of scoring a task.
type outcome struct {
	task   *task
	scored *finished
	err    error
}

// compute scores tasks, so many side by side, and sends what came of each.
func (r *runner) compute(ctx context.Context, tasks []*task, workers int) <-chan outcome {
	outcomes := make(chan outcome, len(tasks)) // with room for all, so that nobody waits where score has ended
	type job struct {
		task *task
		acc  accumulator
	}
	next := make(chan job, len(tasks)) // which loses accumulators one by one, as r.accs does: they are large
	for _, t := range tasks {
		next <- job{t, r.accs[t]}
	}
	close(next)
	for range workers {
		go func() {
			for j := range next {
				if ctx.Err() != nil {
					return
				}
				var scored *finished
				err := guarded(func() (err error) {
					scored, err = j.task.compute(j.acc)
					return err
				})
				outcomes <- outcome{j.task, scored, err}
			}
		}()
	}
	return outcomes
}

// take keeps the scores of a task until those of all its cell are there, which are then written.
func (r *runner) take(p *pass, o outcome) error {
	delete(r.accs, o.task)
	cell := o.task.cell
	if isSaveError(o.err) {
		return o.err
	}
	if o.err != nil {
		if err := r.failCell(cell, o.task.layer(), nil, o.err); err != nil {
			return err
		}
	}
	if cell.failed {
		return nil
	}
	o.task.scored = o.scored
	if err := r.completeCell(cell); err != nil {
		return err
	}
	return r.saveIfDue(p)
}

// completeCell writes a cell's record once all its layers have scores.
func (r *runner) completeCell(c *Cell) error {
	if slices.ContainsFunc(c.tasks, func(t *task) bool { return t.scored == nil }) {
		return nil
	}
	defer r.stats.during(saving)()
	if err := r.folder.writeCell(c); err != nil {
		return &saveError{err}
	}
	if err := r.removeStates(c); err != nil {
		return &saveError{err}
	}
	r.cellDone(c)
	for _, t := range c.tasks {
		t.scored = nil // the folder holds it now
	}
	return nil
}

// cellDone notes that the folder holds the record of a cell.
func (r *runner) cellDone(c *Cell) {
	c.done = true
	r.stats.finished.Add(1)
	r.folder.removeFailures(c.Key)
	r.log.Info("cell finished", "what", c.String())
}
