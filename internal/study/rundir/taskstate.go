package rundir

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/noether-ml/noether/internal/study/plan"
)

// SaveCell writes the state of an unfinished cell: the accumulator (running sums) of each of its
// tasks, such as a measure at one layer, or the task's scores. A cell is a measure for one model,
// data set, transformation value and repetition of the random draws. SaveCell writes nothing if a
// concurrent run has finished the cell, or saved all of this run's shard (a part of the samples).
// If the context ends before the state is written, SaveCell returns the error of the context, and
// the earlier state stays.
func (r *Writer) SaveCell(ctx context.Context, c *plan.Cell, accs map[*plan.Task]plan.Accumulator) error {
	if r.Folder.HasCell(c) { // a concurrent run has finished it and removed its states
		c.Done = true
		return nil
	}
	if slices.ContainsFunc(c.Tasks, func(t *plan.Task) bool { return t.Scored == nil && accs[t] == nil }) {
		// Tasks of other passes (readings of the samples) are copied from the current file. Without
		// the lock, what a concurrent run of the shard saves between reading and writing is lost.
		defer r.Folder.lockStates()()
	}
	path := r.Folder.state(c, r.Options.Shard)
	old, err := openState(path)
	if err == nil {
		defer old.Close()
	} else if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, errDamaged) {
		return err
	}
	if old != nil && !r.Options.Shard.Whole() && isComplete(c, old, r.Options.Shard) && old.isIntact() {
		return nil // a concurrent run has saved all of this shard
	}
	index := &stateIndex{Cell: c.Key, Shard: r.Options.Shard, N: c.Data.Layout.N, Unreadable: c.Data.Unreadable.Names()}
	var tasks []*plan.Task
	for _, t := range c.Tasks {
		if e, ok := r.entryOf(t, accs[t], old); ok {
			index.Entries = append(index.Entries, e)
			tasks = append(tasks, t)
		}
	}
	i := 0
	err = writeState(path, index, func(w io.Writer, e *stateEntry) error {
		t := tasks[i]
		i++
		return writeTask(contextWriter{ctx, w}, t, accs[t], old)
	})
	if err != nil {
		return err
	}
	for i, t := range tasks {
		t.Saved, t.SavedScores = index.Entries[i].Seen, index.Entries[i].Scored
	}
	return nil
}

// A contextWriter is a writer that fails once its context has ended.
type contextWriter struct {
	ctx context.Context
	io.Writer
}

func (w contextWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}

// entryOf returns the entry of a task for a state file, and reports whether there is one. A task
// that this run does not hold keeps its entry in the current file, which a concurrent run may have
// written. A task without an entry is set to start anew, at the first sample.
func (r *Writer) entryOf(t *plan.Task, acc plan.Accumulator, old *stateFile) (e stateEntry, ok bool) {
	layer := t.Name()
	if t.Scored != nil || acc != nil {
		return stateEntry{Layer: layer, Seen: t.Fed, Scored: t.Scored != nil}, true
	}
	if old != nil && old.Cell == t.Cell.Key && old.Shard == r.Options.Shard && old.N == t.Cell.Data.Layout.N {
		if saved := old.entry(layer); saved != nil && old.verify(saved) == nil {
			return stateEntry{Layer: layer, Seen: saved.Seen, Scored: saved.Scored}, true
		}
	}
	t.Fed, t.Saved = 0, 0
	return stateEntry{}, false
}

// writeTask writes a task's scores, the state of its accumulator, or its payload in the old file.
func writeTask(w io.Writer, t *plan.Task, acc plan.Accumulator, old *stateFile) error {
	if t.Scored != nil {
		raw, err := marshalFinished(t)
		if err == nil {
			_, err = w.Write(raw)
		}
		return err
	}
	if large := plan.StateWriter(acc); large != nil { // it can write its state in pieces
		return large.WriteState(w)
	}
	if acc != nil {
		raw, err := acc.MarshalBinary()
		if err == nil {
			_, err = w.Write(raw)
		}
		return err
	}
	_, err := io.Copy(w, old.section(old.entry(t.Name())))
	return err
}
