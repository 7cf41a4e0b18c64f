package study

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
)

// forget starts a cell afresh.
func (c *Cell) forget() {
	for _, t := range c.tasks {
		t.seen, t.scored, t.stored = 0, nil, nil
	}
}

// resume finds out what the folder holds already.
func (r *runner) resume() error {
	r.recallUnreadable()
	for _, c := range r.plan.Cells {
		if r.folder.hasCell(c) {
			c.done = true
			continue
		}
		if c.work != nil { // finds its checkpoint itself
			continue
		}
		f, err := openState(r.folder.state(c, r.o.Part))
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case errors.Is(err, errDamaged):
			r.o.warn("%v; that cell starts afresh", err)
			continue
		case err != nil:
			return err
		}
		err = c.adopt(f)
		f.close()
		if err != nil {
			c.forget()
			r.o.warn("%s: %v; that cell starts afresh", r.folder.state(c, r.o.Part), err)
		}
	}
	return nil
}

// recallUnreadable takes over which samples an earlier run could not read, so that a record of finished cells keeps them.
func (r *runner) recallUnreadable() {
	old, err := scores.ReadRecord(r.folder.path("run.json"))
	if err != nil {
		return // there was none
	}
	for _, d := range r.plan.data {
		for _, was := range old.Data {
			if was.Name == d.spec.Name && was.Fingerprint == d.source.Fingerprint() {
				d.unreadable.add(was.Unreadable...)
			}
		}
	}
}

// adopt takes over what a state file says of the cell's tasks.
func (c *Cell) adopt(f *stateFile) error {
	for _, t := range c.tasks {
		e := f.entry(t.name())
		if e == nil {
			continue
		}
		if e.Scored {
			raw, err := f.bytes(e)
			if err == nil {
				t.scored, err = t.readFinished(raw)
			}
			if err != nil {
				return fmt.Errorf("%w: %w", errDamaged, err)
			}
		}
		t.seen, t.stored = e.Seen, e
	}
	c.Data.unreadable.add(f.Unreadable...)
	return nil
}

// saveAfter saves a pass that ended early with err, unless what ended it was a failure to save. A failure to save now is
// worse news than the end, and takes its place.
func (r *runner) saveAfter(err error, p *pass) error {
	if isSaveError(err) {
		return err
	}
	if saving := r.save(p); saving != nil {
		return saving
	}
	return err
}

// storeOf is the store of the current pass; nil where the run has no folder.
func (r *runner) storeOf() measure.Store {
	if r.store == nil {
		return nil
	}
	return r.store
}

// accumulator makes a task's accumulator, with the state that an earlier run saved.
func (r *runner) accumulator(t *task) (accumulator, error) {
	acc, err := t.open(r.storeOf())
	if err != nil {
		return nil, t.explain(err)
	}
	if t.stored == nil {
		return acc, nil
	}
	f, err := openState(r.folder.state(t.cell, r.o.Part))
	if errors.Is(err, os.ErrNotExist) { // another run of the study has finished the cell meanwhile
		t.seen, t.stored = 0, nil
		return acc, nil
	}
	if err == nil {
		defer f.close()
		err = guarded(func() error { return t.restore(acc, f) })
	}
	if isSaveError(err) {
		return nil, err
	}
	if err != nil { // what could be read of it is in the accumulator already
		r.o.warn("%v; that layer starts afresh", err)
		t.seen, t.stored = 0, nil
		acc, err = t.open(r.storeOf())
		return acc, err
	}
	t.seen = f.entry(t.name()).Seen // another run may have saved since this one began
	return acc, nil
}

// restore reads the task's state from a file.
func (t *task) restore(acc accumulator, f *stateFile) error {
	e := f.entry(t.name())
	if e == nil || e.Scored || f.Cell != t.cell.Key || f.N != t.cell.Data.layout.N {
		return fmt.Errorf("%s: %w", f.f.Name(), errDamaged)
	}
	raw, err := f.bytes(e)
	if err == nil {
		err = acc.UnmarshalBinary(raw)
	}
	if err != nil {
		return fmt.Errorf("%s: layer %s: %w", f.f.Name(), t.name(), err)
	}
	return nil
}

// saveIncomplete keeps what the pass has finished of cells that later passes complete.
func (r *runner) saveIncomplete(p *pass) error {
	if slices.ContainsFunc(p.all(), func(t *task) bool { return !t.cell.done && !t.cell.failed }) {
		return r.save(p)
	}
	return nil
}

func (r *runner) saveIfDue(p *pass) error {
	every := r.o.Every
	if every == 0 {
		every = time.Minute
	}
	if time.Since(r.saved) < every {
		return nil
	}
	return r.save(p)
}

// A saveError is a failure to write into the run folder.
type saveError struct{ error }

func isSaveError(err error) bool {
	var failed *saveError
	return errors.As(err, &failed)
}

func (e *saveError) Unwrap() error { return e.error }

// save writes the state of every unfinished cell of the pass.
func (r *runner) save(p *pass) error {
	defer r.stats.during(saving)()
	saved := map[*Cell]bool{}
	for _, t := range p.all() {
		if saved[t.cell] || t.cell.done || t.cell.failed {
			continue
		}
		saved[t.cell] = true
		if err := r.saveCell(t.cell); err != nil {
			return &saveError{err}
		}
	}
	r.saved = time.Now()
	if err := r.noteProgress(); err != nil {
		return &saveError{err}
	}
	return nil
}

func (r *runner) saveCell(c *Cell) error {
	if r.folder.hasCell(c) { // another run of the study has finished it, and cleared its states
		c.done = true
		return nil
	}
	path := r.folder.state(c, r.o.Part)
	old, err := openState(path)
	if err == nil {
		defer old.close()
	} else if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, errDamaged) {
		return err
	}
	if old != nil && !r.o.Part.Whole() && c.complete(old, r.o.Part) {
		return nil // another run of this shard was faster; what it has is not to be replaced by less
	}
	index := &stateIndex{Cell: c.Key, Part: r.o.Part, N: c.Data.layout.N, Unreadable: c.Data.unreadable.names()}
	var kept []*task
	for _, t := range c.tasks {
		if e, ok := r.entryOf(t, old); ok {
			index.Entries = append(index.Entries, e)
			kept = append(kept, t)
		}
	}
	i := 0
	err = writeState(path, index, func(w io.Writer, e *stateEntry) error {
		t := kept[i]
		i++
		return r.writeTask(w, t, old)
	})
	for i, t := range kept {
		t.stored = &index.Entries[i]
	}
	return err
}

// entryOf is what a state file is to say of a task, if anything. What this run does not hold is taken from the file
// as it is now: another run of the study may have written it since this one read it.
func (r *runner) entryOf(t *task, old *stateFile) (e stateEntry, ok bool) {
	layer := t.name()
	if t.scored != nil || r.accs[t] != nil {
		return stateEntry{Layer: layer, Seen: t.seen, Scored: t.scored != nil}, true
	}
	if old != nil && old.Cell == t.cell.Key && old.Part == r.o.Part && old.N == t.cell.Data.layout.N {
		if was := old.entry(layer); was != nil {
			return stateEntry{Layer: layer, Seen: was.Seen, Scored: was.Scored}, true
		}
	}
	t.seen, t.stored = 0, nil
	return stateEntry{}, false
}

// writeTask writes a task's scores, the state of its accumulator, or what the old file holds of it.
func (r *runner) writeTask(w io.Writer, t *task, old *stateFile) error {
	if t.scored != nil {
		raw, err := t.marshalFinished()
		if err == nil {
			_, err = w.Write(raw)
		}
		return err
	}
	acc := r.accs[t]
	if site, ok := acc.(*siteAccumulator); ok {
		if large, ok := site.Accumulator.(measure.StateWriter); ok {
			return large.WriteState(w)
		}
	}
	if acc != nil {
		raw, err := acc.MarshalBinary()
		if err == nil {
			_, err = w.Write(raw)
		}
		return err
	}
	_, err := io.Copy(w, old.section(old.entry(t.name())))
	return err
}
