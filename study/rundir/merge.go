package rundir

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/noether-ml/noether/study/internal/guard"
	"github.com/noether-ml/noether/study/internal/telemetry"
	"github.com/noether-ml/noether/study/plan"
	"github.com/noether-ml/noether/study/spec"
)

// Merge completes a run from the states that its shards left in the given folders, and writes the
// results of an undivided run into the first folder. It opens the models and the data to check that
// the states belong to the study, but runs no model.
//
// If shards are missing or unfinished, Merge still writes the complete cells, and returns an
// *Incomplete that names the others. Then the run is not marked as finished. As in Run, a failed
// cell does not stop the others. Merge may be repeated, also concurrently.
func Merge(ctx context.Context, s *spec.Study, dirs []string, o plan.Options) (*Result, error) {
	for _, dir := range dirs[1:] {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%s is not a run folder", dir)
		}
	}
	folder, err := Create(dirs[0], o.Warnf)
	if err != nil {
		return nil, err
	}
	plan, err := plan.New(ctx, s, o)
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	r, err := NewWriter(plan, folder, o)
	if err != nil {
		return nil, err
	}
	r.readUnreadable()
	r.mergedDirs = dirs
	if r.states, err = listStates(dirs); err != nil {
		return nil, err
	}
	allowGarbage(plan)
	incomplete := &Incomplete{Cells: len(plan.Cells)}
	for _, c := range plan.Cells {
		if err := r.mergeOrFail(ctx, c, incomplete); err != nil {
			return nil, err
		}
	}
	if len(incomplete.Missing) > 0 {
		result, err := r.finishIncomplete(incomplete)
		return result, errors.Join(err, r.Outcome(), incomplete)
	}
	return r.Finish(ctx)
}

// CompleteCells finishes the cells for which the folder holds the states of all shards. Each shard
// calls it when it ends, so the last one finishes the cell. Shards that end at the same time start
// at different cells, and a cell that two of them finish has the same scores.
func (r *Writer) CompleteCells(ctx context.Context) error {
	var err error
	if r.states, err = listStates([]string{r.Folder.dir}); err != nil {
		return err
	}
	first := (r.Options.Shard.Index - 1) * len(r.Plan.Cells) / r.Options.Shard.Count
	for i := range r.Plan.Cells {
		if err := r.mergeOrFail(ctx, r.Plan.Cells[(first+i)%len(r.Plan.Cells)], &Incomplete{}); err != nil {
			return err
		}
	}
	return nil
}

// mergeOrFail merges a cell, or records the shards that it lacks, or why it failed. It returns only
// errors that end the merge.
func (r *Writer) mergeOrFail(ctx context.Context, c *plan.Cell, incomplete *Incomplete) error {
	if c.Failed {
		return nil
	}
	err := guard.Run(func() error { return r.mergeUnlessDone(ctx, c) })
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil || IsSaveError(err):
		return err
	}
	missing := (*MissingShards)(nil)
	if !errors.As(err, &missing) {
		return r.FailCell(c, "", nil, err)
	}
	if causes := r.shardErrors(c); len(causes) > 0 && r.Options.Shard.Whole() {
		return r.FailCell(c, "", nil, fmt.Errorf("%s lacks %s: %s", c, missing.shards(), firstNames(causes, 2)))
	}
	incomplete.add(err)
	return nil
}

// shardErrors returns a sentence for each shard in which a cell failed, with the error.
func (r *Writer) shardErrors(c *plan.Cell) []string {
	var out []string
	for _, dir := range r.mergedDirs {
		for _, f := range (Folder{dir}).shardFailures(c.Key) {
			out = append(out, fmt.Sprintf("shard %s failed: %s", strings.Replace(f.Shard, "of", "/", 1), f.Error))
		}
	}
	return out
}

// mergeUnlessDone merges a cell that has no record yet.
func (r *Writer) mergeUnlessDone(ctx context.Context, c *plan.Cell) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !r.Folder.HasCell(c) {
		err := r.mergeCell(ctx, c)
		if err == nil || ctx.Err() != nil || !r.Folder.HasCell(c) {
			return err
		}
	}
	c.Done = true // possibly by a concurrent merge, which then removed the states that mergeCell was reading
	return r.removeStates(c)
}

// mergeCell merges the states that the shards left of a cell, in the order of the samples, and
// writes its record.
func (r *Writer) mergeCell(ctx context.Context, c *plan.Cell) error {
	if c.Procedure != nil {
		return r.copyProcedureCell(c)
	}
	defer r.Stats.During(telemetry.Merging)()
	states, err := findStates(c, r.states)
	if missing := (*MissingShards)(nil); errors.As(err, &missing) {
		if copied, failed := r.copyRecord(c); copied || failed != nil {
			return failed
		}
	}
	if err != nil {
		return err
	}
	merged := make(chan error, 1)
	go func() {
		defer func() {
			for _, p := range states {
				p.close()
			}
		}()
		merged <- r.mergeTasks(ctx, c, states)
	}()
	select {
	case err = <-merged:
	case <-ctx.Done(): // the eigenproblem of a large layer takes a minute: do not wait for it
		return context.Cause(ctx)
	}
	if damaged := (*damagedShard)(nil); errors.As(err, &damaged) {
		return missingShards(c, []string{fmt.Sprintf("%d/%d (damaged)", damaged.shard.Index, damaged.shard.Count)})
	}
	if err != nil {
		return err
	}
	for _, p := range states {
		c.Data.Unreadable.Add(p.Unreadable...)
	}
	if err := c.Data.Unreadable.TooMany(); err != nil {
		return fmt.Errorf("data %s: %w", c.Data.Entry.Name, err)
	}
	return r.CompleteCell(c)
}

// copyProcedureCell copies the record of a procedure's cell, and its other files, from the folder
// of the shard that ran it.
func (r *Writer) copyProcedureCell(c *plan.Cell) error {
	for _, dir := range r.mergedDirs {
		from := Folder{dir}
		if record, err := from.readCell(c); err == nil {
			if err := r.Folder.copyFiles(from, c.Key, unitsSuffix, curvesSuffix); err != nil {
				return err
			}
			c.Procedure.Scored = record.Layers
			return r.CompleteCell(c)
		}
	}
	return &MissingShards{Cell: c.String(), Model: c.Model.Entry.Name, Whole: true}
}

// copyRecord copies the per-sample values and then the record of a cell that was finished in
// another folder. It reports whether some folder has the record.
func (r *Writer) copyRecord(c *plan.Cell) (bool, error) {
	for _, dir := range r.mergedDirs {
		from := Folder{dir}
		if from.dir == r.Folder.dir || !from.HasCell(c) {
			continue
		}
		if err := r.Folder.copyFiles(from, c.Key, samplesSuffix, ".json"); err != nil {
			return false, err
		}
		r.cellDone(c)
		return true, nil
	}
	return false, nil
}

// mergeTasks merges the tasks of a cell in parallel, within the memory bound of the study.
func (r *Writer) mergeTasks(ctx context.Context, c *plan.Cell, states []*stateFile) error {
	r.Options.ShareBLAS(min(len(c.Tasks), r.Options.Workers()))
	memory := int64(r.Plan.Study.Memory)
	budget := semaphore.NewWeighted(memory)
	group, taskContext := errgroup.WithContext(ctx)
	group.SetLimit(r.Options.Workers())
	for _, t := range c.Tasks {
		need := min(2*t.FullCost+t.Borrowed, memory) // two accumulators: the result, and the shard merged into it
		if budget.Acquire(taskContext, need) != nil {
			break // a task failed, or the merge was stopped
		}
		group.Go(func() error {
			defer budget.Release(need)
			return guard.Run(func() error { return mergeTask(taskContext, t, states) })
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// A damagedShard is the error of a state that cannot be merged. Running its shard again repairs it.
type damagedShard struct {
	error
	shard plan.Shard
}

// mergeTask merges the accumulators of a task in the states of all shards, in order, and computes
// the scores.
func mergeTask(ctx context.Context, t *plan.Task, states []*stateFile) error {
	var merged plan.Accumulator
	for _, p := range states { // a shard has scores of a task only if its layer was dropped
		if e := p.entry(t.Name()); e.Scored {
			raw, err := p.bytes(e)
			if err == nil {
				t.Scored, err = readFinished(t, raw)
			}
			return err
		}
	}
	for _, p := range states {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		acc, err := t.Open(nil)
		if err != nil {
			return t.Explain(err)
		}
		if err := restore(t, acc, p); err != nil {
			return &damagedShard{err, p.Shard}
		}
		if merged == nil {
			merged = acc
		} else if err := merged.Join(acc); err != nil {
			return t.Explain(err)
		}
	}
	var err error
	t.Scored, err = t.Compute(merged)
	return err
}
