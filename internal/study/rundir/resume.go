package rundir

import (
	"errors"
	"fmt"
	"os"

	"github.com/noether-ml/noether/internal/study/internal/guard"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// resetCell discards the progress of a cell, a unit of a study's work: one measure of one model on
// one data set, under one transformation value, in one trial. Each of its tasks, the work of one
// accumulator (the running sums), is to read its samples from the first one again, and loses its
// scores.
func resetCell(c *plan.Cell) {
	for _, t := range c.Tasks {
		t.Fed, t.Scored, t.Saved, t.SavedScores = 0, nil, 0, false
	}
}

// Resume marks in the plan what the folder already holds: finished cells, and the states (saved
// accumulators) of the others. The records of finished cells stay in memory until ForgetRecords. A
// damaged state is a warning, and its cell starts from the first sample; one that cannot be read is
// an error.
func (r *Writer) Resume() error {
	r.readUnreadable()
	// With Only, the names of the models to run, the folder may hold states of many other models,
	// and listing them is slow.
	if r.Options.Only == nil {
		var err error
		if r.states, err = listByKey([]string{r.Folder.dir}, "states", ".bin"); err != nil {
			return err
		}
	}
	defer allowGarbage(r.Plan)()
	if err := r.readFinished(); err != nil {
		return err
	}
	for _, c := range r.Plan.Cells {
		if _, c.Done = r.records[c]; c.Done {
			continue
		}
		if c.Procedure != nil { // a measure that works in steps; it loads its own checkpoint
			continue
		}
		f, err := openState(r.Folder.state(c, r.Options.Shard))
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case errors.Is(err, errDamaged):
			r.Options.Warnf("%v; that cell starts afresh", err)
			continue
		case err != nil:
			return fmt.Errorf("%w; noether check --fix %s moves it aside", err, r.Folder.dir)
		}
		err = restoreCell(c, f)
		f.Close()
		if err != nil {
			resetCell(c)
			r.Options.Warnf("%s: %v; that cell starts afresh", r.Folder.state(c, r.Options.Shard), err)
		}
	}
	return nil
}

// readUnreadable reads the record of an earlier run, and restores the names of unreadable samples
// from it, because the samples of finished cells are not read again.
func (r *Writer) readUnreadable() {
	old, err := scores.ReadRecord(r.Folder.Path("run.json"))
	if err != nil {
		return // no earlier run, or its record is damaged
	}
	r.before = &old
	for _, d := range r.Plan.Data {
		for _, earlier := range old.Data {
			if earlier.Name == d.Entry.Name && earlier.Fingerprint == d.Source.Fingerprint() {
				d.Unreadable.Add(earlier.Unreadable...)
			}
		}
	}
}

// restoreCell sets the progress of a cell's tasks from a state file.
func restoreCell(c *plan.Cell, f *stateFile) error {
	for _, t := range c.Tasks {
		e := f.entry(t.Name())
		if e == nil {
			continue
		}
		if !e.Scored {
			if err := f.verify(e); err != nil {
				return err
			}
		} else {
			raw, err := f.bytes(e)
			if err == nil {
				t.Scored, err = readFinished(t, raw)
			}
			if err != nil {
				return fmt.Errorf("%w: %w", errDamaged, err)
			}
		}
		t.Fed, t.Saved, t.SavedScores = e.Seen, e.Seen, e.Scored
	}
	c.Data.Unreadable.Add(f.Unreadable...)
	return nil
}

// Accumulator returns a task's accumulator, restored from the state of an earlier run if there is
// one. With a damaged state it warns and returns an empty accumulator. The store is a file for what
// the accumulator need not keep in memory.
func (r *Writer) Accumulator(t *plan.Task, store measure.Store) (plan.Accumulator, error) {
	acc, err := t.Open(store)
	if err != nil {
		return nil, t.Explain(err)
	}
	if t.Saved == 0 {
		return acc, nil
	}
	f, err := openState(r.Folder.state(t.Cell, r.Options.Shard))
	if errors.Is(err, os.ErrNotExist) { // a concurrent run of the study has finished the cell
		t.Fed, t.Saved = 0, 0
		return acc, nil
	}
	if err == nil {
		defer f.Close()
		err = guard.Run(func() error { return restore(t, acc, f) })
	}
	if IsSaveError(err) {
		return nil, err
	}
	if err != nil { // the accumulator may be partly restored
		r.Options.Warnf("%v; that layer starts afresh", err)
		t.Fed, t.Saved = 0, 0
		acc, err = t.Open(store)
		return acc, err
	}
	t.Fed = f.entry(t.Name()).Seen // a concurrent run may have saved since Resume
	return acc, nil
}

// restore reads the task's state from a file into an accumulator.
func restore(t *plan.Task, acc plan.Accumulator, f *stateFile) error {
	e := f.entry(t.Name())
	if e == nil || e.Scored || f.Cell != t.Cell.Key || f.N != t.Cell.Data.Layout.N {
		return fmt.Errorf("%s: %w", f.path, errDamaged)
	}
	raw, err := f.bytes(e)
	if err == nil {
		err = acc.UnmarshalBinary(raw)
	}
	if err != nil {
		return fmt.Errorf("%s: layer %s: %w", f.path, t.Name(), err)
	}
	return nil
}
