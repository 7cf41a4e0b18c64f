package results

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/store"
)

// The state of a task in a shard, or the checkpoint of a procedure, is a record of the store of
// states. Its body is a taskState, its part statePart the accumulator, the scores (a finishedTask)
// or the checkpoint.
const statePart = "state"

// A taskState describes a state. Checkpoints have only the unreadable samples.
type taskState struct {
	Seen       int      `json:"seen,omitempty"`       // position in the order of the samples up to which the task was fed
	N          int      `json:"n,omitempty"`          // number of samples of the data
	Scored     bool     `json:"scored,omitempty"`     // the state holds scores, not an accumulator
	Unreadable []string `json:"unreadable,omitempty"` // names of samples that could not be read
}

// taskKey returns the key of the state of a task: that of its cell, the shard, and the name of the
// task. A procedure is not divided into shards.
func taskKey(c *plan.Cell, s plan.Shard, task string) string {
	if c.Procedure != nil {
		s = plan.Shard{}
	}
	return c.Key + "." + s.String() + "/" + task
}

// sharedPrefix begins the keys of checkpoints that cells share.
const sharedPrefix = "shared/"

func splitKey(key string) (cell, shard, task string) {
	id, task, _ := strings.Cut(key, "/")
	cell, shard, _ = strings.Cut(id, ".")
	return cell, shard, task
}

// Versions of states have the progress in their lower bits, so that the state that is further
// counts. The higher bits change when the task starts anew.
const (
	versionShift  = 48
	versionScored = 1 << (versionShift - 1)
)

// versionOf returns the version of the state of a task.
func (f Folder) versionOf(key string, seen int, scored bool) uint64 {
	before, counts := f.states.Version(key)
	start := before >> versionShift
	if !counts && before > 0 {
		start++
	}
	progress := uint64(seen) + 1
	if scored {
		progress = versionScored
	}
	return start<<versionShift | progress
}

// progressOf returns the progress in a version.
func progressOf(version uint64) (seen int, scored bool) {
	progress := version & (1<<versionShift - 1)
	return int(progress) - 1, progress == versionScored
}

// SaveCell writes the states of an unfinished cell: the accumulator of each of its tasks, or the
// task's scores. It writes nothing if a concurrent run has finished the cell. If the context ends,
// it returns its error, and the earlier states stay.
func (r *Writer) SaveCell(ctx context.Context, c *plan.Cell, accs map[*plan.Task]plan.Accumulator) error {
	if err := r.refresh(); err != nil {
		return err
	}
	if r.Folder.HasCell(c) {
		c.Done = true
		return nil
	}
	var records []store.Record
	var saved []*plan.Task
	for _, t := range c.Tasks {
		key := taskKey(c, r.Options.Shard, t.Name())
		if t.Scored == nil && accs[t] == nil { // a task of another pass
			if _, ok := r.Folder.states.Version(key); !ok {
				t.Fed, t.Saved = 0, 0
			}
			continue
		}
		if !t.HasUnsaved() {
			continue
		}
		body, err := json.Marshal(taskState{t.Fed, c.Data.Layout.N, t.Scored != nil, c.Data.Unreadable.Names()})
		if err != nil {
			return err
		}
		records = append(records, store.Record{Key: key, Version: r.Folder.versionOf(key, t.Fed, t.Scored != nil), Body: body,
			Parts: []store.Part{{Name: statePart, Write: func(w io.Writer) error { return writeTask(contextWriter{ctx, w}, t, accs[t]) }}}})
		saved = append(saved, t)
	}
	if len(records) == 0 {
		return nil
	}
	if err := r.Folder.states.Put(records...); err != nil {
		return err
	}
	for _, t := range saved {
		t.Saved, t.SavedScores = t.Fed, t.Scored != nil
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

// writeTask writes a task's scores or the state of its accumulator.
func writeTask(w io.Writer, t *plan.Task, acc plan.Accumulator) (err error) {
	var raw []byte
	if t.Scored != nil {
		raw, err = marshalFinished(t)
	} else if large := plan.StateWriter(acc); large != nil { // it can write its state in pieces
		return large.WriteState(w)
	} else {
		raw, err = acc.MarshalBinary()
	}
	if err == nil {
		_, err = w.Write(raw)
	}
	return err
}

// errUnusable is the error of a state that does not fit its task.
var errUnusable = errors.New("the state is not that of this task")

func (f Folder) stateOf(key string) (*store.Item, taskState, error) {
	it, err := f.states.Get(key)
	if err != nil {
		return nil, taskState{}, err
	}
	var state taskState
	if err := json.Unmarshal(it.Body, &state); err != nil {
		return nil, state, fmt.Errorf("%s: record %s: %w", it.Where(), key, err)
	}
	return it, state, nil
}

// dropStates drops the states of a finished cell: those of this run, and those that were in the
// folder when its states were listed.
func (r *Writer) dropStates(c *plan.Cell) {
	for _, t := range c.Tasks {
		r.Folder.states.Drop(taskKey(c, r.Options.Shard, t.Name()))
	}
	r.Folder.states.Drop(r.states[c.Key]...)
}

// listStates notes which states the folder has.
func (r *Writer) listStates() {
	r.states = map[string][]string{}
	for _, key := range r.Folder.states.Keys() {
		cell, _, _ := splitKey(key)
		r.states[cell] = append(r.states[cell], key)
	}
}

// dropShared drops the checkpoints that cells share.
func (f Folder) dropShared() {
	for _, key := range f.states.Keys() {
		if strings.HasPrefix(key, sharedPrefix) {
			f.states.Drop(key)
		}
	}
}
