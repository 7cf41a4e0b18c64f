package results

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
	"github.com/noether-ml/noether/internal/study/store"
	"github.com/noether-ml/noether/scores"
)

// Merge completes a run from the states of shards in the given folders, and writes the results of
// an undivided run into the first. It opens models and data to check the states, but runs no model.
// If shards are missing or unfinished, it writes the complete cells and returns an *Incomplete. It
// may be repeated, also concurrently.
func Merge(ctx context.Context, s *spec.Study, dirs []string, o plan.Options) (result *Result, err error) {
	for _, dir := range dirs[1:] {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, fmt.Errorf("%s is not a run folder", dir)
		}
	}
	p, folders, err := openMerge(ctx, s, dirs, o)
	if p != nil {
		defer p.Close()
	}
	if err != nil {
		return nil, err
	}
	r, err := NewWriter(p, folders[0], o)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closing := r.Close(); err == nil {
			err = SaveError(closing)
		}
	}()
	r.Folder = folders[0]
	r.readUnreadable()
	r.merged = folders
	r.warnOfDamage()
	r.records = make(map[*plan.Cell]cellRecord, len(p.Cells))
	allowGarbage(p) // lets the heap grow more between collections
	incomplete := &Incomplete{Cells: len(p.Cells)}
	defer func() {
		if r.sampleTable != nil { // Finish was not reached
			r.sampleTable.stop()
		}
	}()
	if err := r.mergeCells(ctx, p.Cells, incomplete); err != nil {
		return nil, err
	}
	if len(incomplete.Missing) > 0 {
		result, err := r.finishIncomplete(ctx, incomplete)
		return result, errors.Join(err, r.Outcome(), incomplete)
	}
	if result := r.Unchanged(); result != nil {
		return result, nil
	}
	return r.Finish(ctx)
}

// openMerge opens the plan and reads the stores of all folders. The caller closes the plan, which
// may be nil after an error.
func openMerge(ctx context.Context, s *spec.Study, dirs []string, o plan.Options) (p *plan.Plan, folders []Folder, err error) {
	if warn := o.Warn; warn != nil {
		var mu sync.Mutex
		o.Warn = func(text string) {
			mu.Lock()
			defer mu.Unlock()
			warn(text)
		}
	}
	for _, dir := range dirs {
		folders = append(folders, open(dir))
	}
	var group errgroup.Group
	group.Go(func() (err error) {
		if folders[0], err = Create(dirs[0], o.Warnf); err != nil {
			return err
		}
		for _, f := range folders {
			if err := f.load(); err != nil {
				return err
			}
		}
		return nil
	})
	p, failed := plan.New(ctx, s, o)
	return p, folders, cmp.Or(group.Wait(), failed)
}

// CompleteCells finishes the cells with the states of all shards. Each shard calls it at its end,
// so the last one finishes the cell; a cell that two finish at once has the same scores.
func (r *Writer) CompleteCells(ctx context.Context) error {
	r.Folder.readShards(r.Options)
	if err := r.Folder.load(); err != nil {
		return err
	}
	first := (r.Options.Shard.Index - 1) * len(r.Plan.Cells) / r.Options.Shard.Count
	return r.mergeCells(ctx, slices.Concat(r.Plan.Cells[first:], r.Plan.Cells[:first]), &Incomplete{})
}

const mergeChunk = 256 // cells whose records a merge writes at once

// mergeCells returns only errors that end the merge.
func (r *Writer) mergeCells(ctx context.Context, cells []*plan.Cell, incomplete *Incomplete) error {
	r.listStates()
	failures, err := listFailures(r.merged)
	if err != nil {
		return err
	}
	if r.merged != nil && len(r.Folder.cells.Keys()) == 0 { // else cells of an earlier merge would be read while others are merged
		r.sampleTable = r.startSampleTable(ctx)
	}
	m := &merger{Writer: r, cores: semaphore.NewWeighted(int64(r.Options.Workers())), memory: semaphore.NewWeighted(int64(r.Plan.Study.Memory))}
	m.found = findStates(m.folders())
	var finishing errgroup.Group // writes the records of a chunk while the next one is merged
	defer finishing.Wait()
	for chunk := range slices.Chunk(cells, mergeChunk) {
		errs := m.mergeAll(ctx, chunk)
		merged, records := m.taken()
		if err := finishing.Wait(); err != nil {
			return err
		}
		for i, c := range chunk {
			if err := r.noteUnmerged(ctx, c, errs[i], failures[c.Key], incomplete); err != nil {
				return err
			}
		}
		complete := len(incomplete.Missing) == 0
		finishing.Go(func() error {
			if err := r.finishCells(merged, records); err != nil {
				return err
			}
			if r.sampleTable != nil && complete {
				r.sampleTable.add(chunk)
			}
			return nil
		})
	}
	return finishing.Wait()
}

// noteUnmerged records the shards that a cell lacks, or why it failed with err. failures are the
// files of shards about the cell. It returns only errors that end the merge.
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

func shardErrors(failures []string) []string {
	var out []string
	for _, file := range failures {
		if f, err := scores.ReadFailure(file); err == nil && f.Shard != "" {
			out = append(out, fmt.Sprintf("shard %s failed: %s", strings.Replace(f.Shard, "of", "/", 1), f.Error))
		}
	}
	return out
}

type merger struct {
	*Writer
	found map[string][]*shardStates // by cell
	// Limits that all cells share: tasks that compute, and bytes of accumulators.
	cores, memory *semaphore.Weighted
	blasSharers   int // number of goroutines between which the threads of the BLAS are divided at present

	writing sync.Mutex // guards the following
	cells   []*plan.Cell
	records []store.Record // of the cells, to be written
}

func (m *merger) folders() []Folder {
	if m.merged == nil {
		return []Folder{m.Folder}
	}
	return m.merged
}

// taken returns the cells whose records are to be written, and forgets them.
func (m *merger) taken() ([]*plan.Cell, []store.Record) {
	cells, records := m.cells, m.records
	m.cells, m.records = nil, nil
	return cells, records
}

const mergedTogether = 16 // cells at once: more than cores, since most of the time goes into waiting for the disk

// mergeAll returns the error of each cell. Cells that use different numbers of BLAS threads are not
// merged at the same time, since that number affects rounding.
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

func (m *merger) mergeUnlessDone(ctx context.Context, c *plan.Cell) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	isDone := func() bool {
		record, err := m.Folder.readCell(c)
		if err == nil {
			m.keepRecord(c, record)
		}
		return err == nil
	}
	if !isDone() {
		err := m.mergeCell(ctx, c)
		if err == nil || ctx.Err() != nil || m.refresh() != nil || !isDone() {
			return err
		}
	}
	c.Done = true // possibly by a concurrent merge, which then removed the states that mergeCell was reading
	m.dropStates(c)
	return nil
}

func (m *merger) mergeCell(ctx context.Context, c *plan.Cell) error {
	if c.Procedure != nil {
		if copied, err := m.copyRecord(c); copied || err != nil {
			return err
		}
		return &MissingShards{Cell: c.String(), Model: c.Model.Entry.Name, Whole: true}
	}
	defer m.Stats.During(telemetry.Merging)()
	shards, err := m.completeShards(c)
	if err != nil {
		if copied, failed := m.copyRecord(c); copied || failed != nil {
			return failed
		}
		return err
	}
	merge := func() error { return m.mergeTasks(ctx, c, shards) }
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
	if err := c.Data.Unreadable.TooMany(); err != nil {
		return fmt.Errorf("data %s: %w", c.Data.Entry.Name, err)
	}
	record, err := m.recordOf(c)
	if err != nil {
		return err
	}
	return m.add(c, record)
}

// add writes a large record now, others later together.
func (m *merger) add(c *plan.Cell, record store.Record) error {
	if isLarge(&record) {
		return m.finishCells([]*plan.Cell{c}, []store.Record{record})
	}
	m.writing.Lock()
	defer m.writing.Unlock()
	m.cells, m.records = append(m.cells, c), append(m.records, record)
	return nil
}

// copyRecord reports whether some folder has the record.
func (m *merger) copyRecord(c *plan.Cell) (bool, error) {
	for _, from := range m.merged {
		if from.dir == m.Folder.dir {
			continue
		}
		if _, err := from.readCell(c); err != nil {
			continue
		}
		it, err := from.cells.Get(c.Key)
		if err != nil {
			return false, err
		}
		return true, m.finishCells([]*plan.Cell{c}, []store.Record{it.Record()})
	}
	return false, nil
}

// isCheap reports whether merging takes less time than starting goroutines. A study may have
// 100,000 such cells.
func isCheap(c *plan.Cell) bool {
	const cheap = 64 << 10 // bytes
	var sum int64
	for _, t := range c.Tasks {
		sum += t.FullCost + t.Borrowed
	}
	return sum <= cheap
}

// mergeTasks keeps within the memory bound of the study.
func (m *merger) mergeTasks(ctx context.Context, c *plan.Cell, shards []*shardStates) error {
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
			return guard.Run(func() error { return m.mergeTask(taskContext, t, shards) })
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

// A damagedShard is repaired by running its shard again.
type damagedShard struct {
	error
	shard plan.Shard
}

// mergeTask merges the states of all shards, in order.
func (m *merger) mergeTask(ctx context.Context, t *plan.Task, shards []*shardStates) error {
	var merged plan.Accumulator
	for _, s := range shards { // a shard has scores of a task only if its layer was dropped, because it held NaN or infinity
		found := s.states[t.Name()]
		if _, scored := progressOf(found.version); !scored {
			continue
		}
		it, state, err := found.folder.stateOf(found.key)
		if err == nil {
			t.Cell.Data.Unreadable.Add(state.Unreadable...)
			var raw []byte
			if raw, err = it.Bytes(statePart); err == nil {
				t.Scored, err = readFinished(t, raw)
			}
		}
		return err
	}
	for _, s := range shards {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		acc, err := t.Open(nil)
		if err != nil {
			return t.Explain(err)
		}
		found := s.states[t.Name()]
		state, err := found.folder.restore(t, acc, found.key)
		if err != nil {
			return &damagedShard{err, s.shard}
		}
		t.Cell.Data.Unreadable.Add(state.Unreadable...)
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
