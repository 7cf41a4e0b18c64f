package rundir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"github.com/noether-ml/noether/internal/study/internal/guard"
	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/scores"
)

// Merge completes a run from the states that its shards left in the given folders, and writes the
// results of an undivided run into the first folder. A shard is a part of the samples that one
// process measures. Its state is the saved accumulators (running sums) of a cell: a measure for one
// model, data set, transformation value and trial. Merge opens the models and the data to check
// that the states belong to the study, but runs no model.
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
	p, folder, states, err := openMerge(ctx, s, dirs, o)
	if p != nil {
		defer p.Close()
	}
	if err != nil {
		return nil, err
	}
	r, err := NewWriter(p, folder, o)
	if err != nil {
		return nil, err
	}
	r.readUnreadable()
	r.mergedDirs = dirs
	r.records = make(map[*plan.Cell]cellRecord, len(p.Cells))
	allowGarbage(p) // lets the heap grow more between collections
	incomplete := &Incomplete{Cells: len(p.Cells)}
	defer func() {
		if r.sampleTable != nil { // Finish was not reached
			r.sampleTable.stop()
		}
	}()
	if err := r.mergeCells(ctx, p.Cells, states, incomplete); err != nil {
		return nil, err
	}
	if len(incomplete.Missing) > 0 {
		result, err := r.finishIncomplete(incomplete)
		return result, errors.Join(err, r.Outcome(), incomplete)
	}
	if result := r.Unchanged(); result != nil {
		return result, nil
	}
	return r.Finish(ctx)
}

// openMerge makes the run folder dirs[0] and lists the states in all folders, while it opens the
// models and the data. The caller closes the plan, which may be nil after an error.
func openMerge(ctx context.Context, s *spec.Study, dirs []string, o plan.Options) (p *plan.Plan, folder Folder, states filesByKey, err error) {
	if warn := o.Warn; warn != nil {
		var mu sync.Mutex
		o.Warn = func(text string) {
			mu.Lock()
			defer mu.Unlock()
			warn(text)
		}
	}
	var group errgroup.Group
	group.Go(func() (err error) {
		if folder, err = Create(dirs[0], o.Warnf); err == nil {
			states, err = listByKey(dirs, "states", ".bin")
		}
		return err
	})
	p, failed := plan.New(ctx, s, o)
	return p, folder, states, cmp.Or(group.Wait(), failed)
}

// CompleteCells finishes the cells for which the folder holds the states of all shards. Each shard
// calls it when it ends, so the last one finishes the cell. Shards that end at the same time start
// at different cells, and a cell that two of them finish has the same scores.
func (r *Writer) CompleteCells(ctx context.Context) error {
	states, err := listByKey([]string{r.Folder.dir}, "states", ".bin")
	if err != nil {
		return err
	}
	first := (r.Options.Shard.Index - 1) * len(r.Plan.Cells) / r.Options.Shard.Count
	return r.mergeCells(ctx, slices.Concat(r.Plan.Cells[first:], r.Plan.Cells[:first]), states, &Incomplete{})
}

// mergeChunk is the number of cells whose files a merge writes before it syncs their folder.
const mergeChunk = 256

// mergeCells merges cells from the given states, or records the shards that they lack, or why they
// failed. It returns only errors that end the merge.
func (r *Writer) mergeCells(ctx context.Context, cells []*plan.Cell, states filesByKey, incomplete *Incomplete) error {
	listed, err := r.Folder.listCells()
	if err != nil {
		return err
	}
	r.states = states
	failures, err := listByKey(r.mergedDirs, "failures", ".json")
	if err != nil {
		return err
	}
	if r.mergedDirs != nil && len(listed) == 0 { // else cells of an earlier merge would be read while others are merged
		r.sampleTable = r.startSampleTable(ctx)
	}
	m := &merger{Writer: r, listed: listed, files: semaphore.NewWeighted(maxStateFiles), cores: semaphore.NewWeighted(int64(r.Options.Workers())), memory: semaphore.NewWeighted(int64(r.Plan.Study.Memory))}
	var finishing errgroup.Group // finishes a chunk while the next one is merged
	defer finishing.Wait()
	for chunk := range slices.Chunk(cells, mergeChunk) {
		errs := m.mergeAll(ctx, chunk)
		var merged []*plan.Cell
		for i, c := range chunk {
			if errs[i] == nil && !c.Failed && !c.Done {
				merged = append(merged, c)
			}
		}
		if err := finishing.Wait(); err != nil {
			return err
		}
		finishing.Go(func() error { return r.finishCells(merged...) })
		for i, c := range chunk {
			if err := r.noteUnmerged(ctx, c, errs[i], failures[c.Key], incomplete); err != nil {
				return err
			}
		}
		if r.sampleTable != nil && len(incomplete.Missing) == 0 {
			r.sampleTable.add(chunk)
		}
	}
	return finishing.Wait()
}

// noteUnmerged records the shards that a cell lacks, or why it failed. err is the error of its
// merge, and failures are the files that runs of shards wrote about the cell. It returns only
// errors that end the merge.
func (r *Writer) noteUnmerged(ctx context.Context, c *plan.Cell, err error, failures []string, incomplete *Incomplete) error {
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
	if causes := shardErrors(failures); len(causes) > 0 && r.Options.Shard.Whole() { // a merge, not the end of a shard
		return r.FailCell(c, "", nil, fmt.Errorf("%s lacks %s: %s", c, missing.shards(), firstNames(causes, 2)))
	}
	incomplete.add(err)
	return nil
}

// shardErrors returns a sentence for each failure of a shard, with the error.
func shardErrors(failures []string) []string {
	var out []string
	for _, file := range failures {
		if f, err := scores.ReadFailure(file); err == nil && f.Shard != "" {
			out = append(out, fmt.Sprintf("shard %s failed: %s", strings.Replace(f.Shard, "of", "/", 1), f.Error))
		}
	}
	return out
}

// A merger merges several cells at once.
type merger struct {
	*Writer
	listed map[string]bool // names of the files in the folder of the cells at the start
	// Limits that all cells share: of the number of open state files, of the number of tasks (a
	// cell has one for each layer) that compute, and of the memory of accumulators in bytes.
	files, cores, memory *semaphore.Weighted
	blasSharers          int // number of goroutines between which the threads of the BLAS are divided at present
}

const (
	maxStateFiles  = 512 // open at once, unless a cell alone has more
	mergedTogether = 16  // cells at once: more than cores, since most of the time goes into waiting for the disk
)

// mergeAll merges cells and returns the error of each. Cells that use different numbers of threads
// of the BLAS are not merged at the same time, since that number affects rounding.
func (m *merger) mergeAll(ctx context.Context, cells []*plan.Cell) []error {
	errs := make([]error, 0, len(cells))
	sharers := func(c *plan.Cell) int { return min(len(c.Tasks), m.Options.Workers()) }
	for len(cells) > 0 {
		n := sharers(cells[0])
		end := slices.IndexFunc(cells, func(c *plan.Cell) bool { return sharers(c) != n })
		if end < 0 {
			end = len(cells)
		}
		if n != m.blasSharers {
			m.Options.ShareBLAS(n)
			m.blasSharers = n
		}
		some := make([]error, end)
		_ = parallel(mergedTogether, end, func(i int) error {
			if c := cells[i]; !c.Failed {
				some[i] = guard.Run(func() error { return m.mergeUnlessDone(ctx, c) })
			}
			return nil
		})
		errs, cells = append(errs, some...), cells[end:]
	}
	return errs
}

// mergeUnlessDone merges a cell that has no record, the file of its scores, yet. If it has one, the
// cell is done.
func (m *merger) mergeUnlessDone(ctx context.Context, c *plan.Cell) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	isDone := func(listed map[string]bool) bool {
		record, err := m.Folder.readCell(c, listed)
		if err == nil {
			m.keepRecord(c, record)
		}
		return err == nil
	}
	if !m.listed[c.Key+".json"] || !isDone(m.listed) {
		err := m.mergeCell(ctx, c)
		if err == nil || ctx.Err() != nil || !isDone(nil) {
			return err
		}
	}
	c.Done = true // possibly by a concurrent merge, which then removed the states that mergeCell was reading
	return m.removeStates(c)
}

// mergeCell merges the states that the shards left of a cell, in the order of the samples, and
// writes its files.
func (m *merger) mergeCell(ctx context.Context, c *plan.Cell) error {
	if c.Procedure != nil {
		return m.copyProcedureCell(c)
	}
	defer m.Stats.During(telemetry.Merging)()
	open := min(int64(len(m.states[c.Key])), maxStateFiles)
	if m.files.Acquire(ctx, open) != nil {
		return context.Cause(ctx)
	}
	defer m.files.Release(open)
	states, err := findStates(c, m.states)
	if missing := (*MissingShards)(nil); errors.As(err, &missing) {
		if copied, failed := m.copyRecord(c); copied || failed != nil {
			return failed
		}
	}
	if err != nil {
		return err
	}
	merge := func() error {
		defer func() {
			for _, p := range states {
				p.Close()
			}
		}()
		return m.mergeTasks(ctx, c, states)
	}
	if isCheap(c) {
		err = merge()
	} else {
		merged := make(chan error, 1)
		go func() { merged <- merge() }()
		select {
		case err = <-merged:
		case <-ctx.Done(): // the eigenproblem of a large layer takes a minute: do not wait for it
			return context.Cause(ctx)
		}
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
	return m.writeCell(c)
}

// copyProcedureCell copies the record of a procedure's cell, and its other files, from the folder
// of the shard that ran it. A procedure, a measure that works in steps such as the training of
// probes, is not divided: one shard runs it on all of its samples.
func (r *Writer) copyProcedureCell(c *plan.Cell) error {
	for _, dir := range r.mergedDirs {
		from := Folder{dir}
		if record, err := from.readCell(c, nil); err == nil {
			if err := r.Folder.copyFiles(from, c.Key, unitsSuffix, curvesSuffix); err != nil {
				return err
			}
			c.Procedure.Scored = record.Layers
			return r.writeCell(c)
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

// isCheap reports whether the accumulators of a cell are so small that merging them takes less time
// than starting goroutines for them. A study may have 100,000 such cells.
func isCheap(c *plan.Cell) bool {
	const cheap = 64 << 10 // bytes
	var sum int64
	for _, t := range c.Tasks {
		sum += t.FullCost + t.Borrowed
	}
	return sum <= cheap
}

// mergeTasks merges the tasks of a cell in parallel, within the memory bound of the study.
func (m *merger) mergeTasks(ctx context.Context, c *plan.Cell, states []*stateFile) error {
	cheap := isCheap(c)
	group, taskContext := errgroup.WithContext(ctx)
	for _, t := range c.Tasks {
		need := min(2*t.FullCost+t.Borrowed, int64(m.Plan.Study.Memory)) // two accumulators: the result, and the shard merged into it
		if m.cores.Acquire(taskContext, 1) != nil {
			break // a task failed, or the merge was stopped
		}
		if m.memory.Acquire(taskContext, need) != nil {
			m.cores.Release(1)
			break
		}
		merge := func() error {
			defer m.cores.Release(1)
			defer m.memory.Release(need)
			return guard.Run(func() error { return mergeTask(taskContext, t, states) })
		}
		if !cheap {
			group.Go(merge)
		} else if err := merge(); err != nil {
			group.Go(func() error { return err })
			break
		}
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
	for _, p := range states { // a shard has scores of a task only if its layer was dropped, because it held NaN or infinity
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
