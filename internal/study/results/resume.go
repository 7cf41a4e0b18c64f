package results

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/noether-ml/noether/internal/study/internal/guard"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/store"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// Resume marks in the plan what the folder already holds: finished cells, and the states of the
// others. The records of finished cells stay in memory until ForgetRecords. It warns of damaged
// records and states, which are computed again.
func (r *Writer) Resume() error {
	r.readUnreadable()
	defer allowGarbage(r.Plan)()
	if err := r.Folder.load(); err != nil {
		return err
	}
	r.warnOfDamage()
	r.listStates()
	if err := r.readFinished(); err != nil {
		return err
	}
	for _, c := range r.Plan.Cells {
		if _, c.Done = r.records[c]; c.Done || c.Procedure != nil { // a procedure loads its own checkpoint
			continue
		}
		for _, t := range c.Tasks {
			if err := r.restoreTask(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// warnOfDamage warns of logs that a kill, a loss of power or damage has left incomplete.
func (r *Writer) warnOfDamage() {
	for sub, s := range map[string]*store.Store{"cells": r.Folder.cells, "states": r.Folder.states} {
		for _, l := range s.Logs() {
			if why := damageOf(l); why != "" && !l.InUse {
				r.Options.Warnf("%s %s; what it held is computed again", r.Folder.Path(sub, l.Name), why)
			}
		}
	}
}

// damageOf describes what is wrong with a log, or returns "".
func damageOf(l store.Log) string {
	switch {
	case l.Damaged > 0:
		return fmt.Sprintf("is damaged in %d places", l.Damaged)
	case l.Tail > 0:
		return "ends in an incomplete record, as after a kill"
	}
	return ""
}

// restoreTask sets the progress of a task from its state.
func (r *Writer) restoreTask(t *plan.Task) error {
	key := taskKey(t.Cell, r.Options.Shard, t.Name())
	it, state, err := r.Folder.stateOf(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && state.N != t.Cell.Data.Layout.N {
		err = errUnusable
	}
	if err == nil && state.Scored {
		var raw []byte
		if raw, err = it.Bytes(statePart); err == nil {
			t.Scored, err = readFinished(t, raw)
		}
	}
	if bad := (*fs.PathError)(nil); errors.As(err, &bad) {
		return err
	}
	if err != nil {
		r.startAnew(t, key, err)
		return nil
	}
	t.Fed, t.Saved, t.SavedScores = state.Seen, state.Seen, state.Scored
	t.Cell.Data.Unreadable.Add(state.Unreadable...)
	return nil
}

// startAnew drops a state that is of no use, so that its task is fed from the first sample.
func (r *Writer) startAnew(t *plan.Task, key string, why error) {
	r.Options.Warnf("%s, layer %s: %v; it starts afresh", t.Cell, t.Name(), why)
	r.Folder.states.Drop(key)
	t.Fed, t.Scored, t.Saved, t.SavedScores = 0, nil, 0, false
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
	if r.Folder.states == nil { // an estimate measures without a folder
		t.Fed, t.Saved = 0, 0
		return acc, nil
	}
	key := taskKey(t.Cell, r.Options.Shard, t.Name())
	var state taskState
	err = guard.Run(func() error {
		state, err = r.Folder.restore(t, acc, key)
		return err
	})
	switch {
	case IsSaveError(err):
		return nil, err
	case errors.Is(err, fs.ErrNotExist): // a concurrent run of the study has finished the cell
		t.Fed, t.Saved = 0, 0
		return acc, nil
	case err != nil: // the accumulator may be partly restored
		r.startAnew(t, key, err)
		return t.Open(store)
	}
	t.Fed = state.Seen // a concurrent run may have saved since Resume
	return acc, nil
}

// restore reads the state of a key into the accumulator of a task.
func (f Folder) restore(t *plan.Task, acc plan.Accumulator, key string) (taskState, error) {
	it, state, err := f.stateOf(key)
	if err != nil {
		return state, err
	}
	if state.Scored || state.N != t.Cell.Data.Layout.N {
		return state, fmt.Errorf("%s: record %s: %w", it.Where(), key, errUnusable)
	}
	raw, err := it.Bytes(statePart)
	if err == nil {
		err = acc.UnmarshalBinary(raw)
	}
	if err != nil {
		err = fmt.Errorf("%s: layer %s: %w", it.Where(), t.Name(), err)
	}
	return state, err
}
