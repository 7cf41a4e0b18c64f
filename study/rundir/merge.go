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
// If shards are missing or unfinished, Merge still writes the cells that are complete and returns
// an *Incomplete that names the others; the run is then not marked as finished. A failed cell does
// not stop the others, as in Run. Merge may be repeated, also concurrently.
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
	lack := &Incomplete{Cells: len(plan.Cells)}
	for _, c := range plan.Cells {
		if err := r.mergeOrFail(ctx, c, lack); err != nil {
			return nil, err
		}
	}
	if len(lack.Missing) > 0 {
		result, err := r.finishIncomplete(lack)
		return result, errors.Join(err, r.Outcome(), lack)
	}
	return r.Finish(ctx)
}

// CompleteCells finishes the cells of which all other shards are in the folder by now, so that the
// shard that ends last finishes a cell. Shards that end together start at different cells; work
// done twice is harmless.
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

// mergeOrFail merges a cell, or records what it lacks or why it failed. It returns only errors that
// end the merge.
func (r *Writer) mergeOrFail(ctx context.Context, c *plan.Cell, lack *Incomplete) error {
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
	lack.add(err)
	return nil
}

// shardErrors returns the errors of the shards in which a cell failed.
func (r *Writer) shardErrors(c *plan.Cell) []string {
	var out []string
	for _, dir := range r.mergedDirs {
		for _, f := range (Folder{dir}).partFailures(c.Key) {
			out = append(out, fmt.Sprintf("shard %s failed: %s", strings.Replace(f.Part, "of", "/", 1), f.Error))
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
	c.Done = true // possibly by a concurrent merge, which removed the states in use here
	return r.removeStates(c)
}

// mergeCell merges the states that the shards left of a cell, in the order of the samples, and
// writes its record.
func (r *Writer) mergeCell(ctx context.Context, c *plan.Cell) error {
	if c.Procedure != nil {
		return r.copyProcedureCell(c)
	}
	defer r.Stats.During(telemetry.Merging)()
	parts, err := findParts(c, r.states)
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
			for _, p := range parts {
				p.close()
			}
		}()
		merged <- r.mergeTasks(ctx, c, parts)
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
	for _, p := range parts {
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

// copyRecord copies the record of a cell that was finished in another folder, after its per-sample
// values. It reports whether there was one.
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

// mergeTasks merges the layers of a cell in parallel, within the memory bound.
func (r *Writer) mergeTasks(ctx context.Context, c *plan.Cell, parts []*stateFile) error {
	r.Options.ShareBLAS(min(len(c.Tasks), r.Options.Workers()))
	memory := int64(r.Plan.Study.Memory)
	room := semaphore.NewWeighted(memory)
	group, layers := errgroup.WithContext(ctx)
	group.SetLimit(r.Options.Workers())
	for _, t := range c.Tasks {
		need := min(2*t.FullCost+t.Borrowed, memory) // two accumulators: the result, and the part merged into it
		if room.Acquire(layers, need) != nil {
			break // a task failed, or the merge was stopped
		}
		group.Go(func() error {
			defer room.Release(need)
			return guard.Run(func() error { return mergeParts(layers, t, parts) })
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// A damagedShard is the error of a state that cannot be merged. A run of its shard computes it
// again.
type damagedShard struct {
	error
	shard plan.Shard
}

func mergeParts(ctx context.Context, t *plan.Task, parts []*stateFile) error {
	var whole plan.Accumulator
	for _, p := range parts { // a part has scores only of a layer that was given up
		if e := p.entry(t.Name()); e.Scored {
			raw, err := p.bytes(e)
			if err == nil {
				t.Scored, err = readFinished(t, raw)
			}
			return err
		}
	}
	for _, p := range parts {
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
		if whole == nil {
			whole = acc
		} else if err := whole.Join(acc); err != nil {
			return t.Explain(err)
		}
	}
	var err error
	t.Scored, err = t.Compute(whole)
	return err
}
