package study

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

// Options are what a run needs besides the study and what its scores do not depend on.
type Options struct {
	Runtime  *ort.Runtime
	Threads  int                 // of the engine; 0: all cores
	Device   string              // "" or "cpu", "cuda", ...
	BLAS     *linalg.Backend     // whose threads a run sets as it needs them; may be nil
	Part     Part                // the share of the samples to run; zero: all
	Every    time.Duration       // between saves of unfinished work; 0: a minute
	Progress func(Progress)      // called after each batch; may be nil
	Warn     func(string)        // called with what a user should know and no score carries; may be nil
	Record   scores.EngineRecord // what computes the scores, for run.json
	Version  string              // of this program, for run.json
}

// Progress is how far a run has come, in samples that the engine has run or will run.
type Progress struct {
	Done, Total  int64
	Pass, Passes int
	Model, Data  string
}

// cores is how many goroutines work side by side.
func (o *Options) cores() int {
	if o.Threads > 0 {
		return o.Threads
	}
	return runtime.GOMAXPROCS(0)
}

func (o *Options) warn(format string, args ...any) {
	if o.Warn != nil {
		o.Warn(fmt.Sprintf(format, args...))
	}
}

// Run fills a folder with what is missing of a study: cells first, then scores.csv, scores.parquet and run.json. Where it
// stops half-way (a cancelled context, a full disk, a kill), what was done stays, at most a minute's work is lost,
// and the next Run goes on from there. With a part of the samples it leaves states for Merge, and no scores.
func Run(ctx context.Context, s *Study, dir string, o Options) (*Result, error) {
	folder, err := createFolder(dir)
	if err != nil {
		return nil, err
	}
	plan, err := NewPlan(ctx, s, o)
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	return plan.run(ctx, folder, o)
}

func (p *Plan) run(ctx context.Context, folder Folder, o Options) (*Result, error) {
	r := &runner{plan: p, folder: folder, o: o, accs: map[*task]measure.Accumulator{}, started: time.Now().UTC()}
	if err := r.resume(); err != nil {
		return nil, err
	}
	if err := r.writeRecord(false); err != nil {
		return nil, err
	}
	todo := passes(p.Cells, int64(p.Study.Memory), o.Part)
	r.progress.Passes = len(todo)
	for _, pass := range todo {
		r.progress.Total += pass.forwards()
	}
	for i, pass := range todo {
		r.progress.Pass = i + 1
		if err := r.runPass(ctx, pass); err != nil {
			return nil, err
		}
	}
	if !o.Part.Whole() {
		return &Result{Record: r.record(false)}, nil
	}
	return r.finish(ctx)
}

// A runner is a run in progress.
type runner struct {
	plan     *Plan
	folder   Folder
	o        Options
	started  time.Time
	progress Progress
	accs     map[*task]measure.Accumulator // of the current pass
	saved    time.Time                     // when states were last saved
}

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
		e := f.entry(t.site.Layer.Name)
		if e == nil {
			continue
		}
		if e.Scored {
			raw, err := f.bytes(e)
			if err == nil {
				t.scored, err = readFinished(raw)
			}
			if err != nil {
				return fmt.Errorf("%w: %v", errDamaged, err)
			}
		}
		t.seen, t.stored = e.Seen, e
	}
	c.Data.unreadable.add(f.Unreadable...)
	return nil
}

func (r *runner) runPass(ctx context.Context, p *pass) error {
	f, err := r.newFeeder(p)
	if err != nil {
		return err
	}
	r.shareCores(p)
	if r.saved.IsZero() {
		r.saved = time.Now()
	}
	r.progress.Model, r.progress.Data = p.model.spec.Name, p.data.spec.Name
	err = f.run(ctx, func(forwards int) error {
		r.progress.Done += int64(forwards)
		if r.o.Progress != nil {
			r.o.Progress(r.progress)
		}
		return r.saveIfDue(p)
	})
	if closing := f.session.Close(); err == nil {
		err = closing // before the scores, which want the memory
	}
	if err != nil {
		return r.saveAfter(err, p)
	}
	if !r.o.Part.Whole() {
		err = r.save(p)
	} else if err = r.score(ctx, p); err != nil {
		err = r.saveAfter(err, p)
	}
	clear(r.accs)
	return err
}

// shareCores gives the BLAS the threads that are left over where the tasks of a view run side by side: two layers on a
// core each are faster than one after the other on two.
func (r *runner) shareCores(p *pass) {
	if r.o.BLAS == nil {
		return
	}
	most := 1
	for _, tasks := range p.tasks {
		most = max(most, len(tasks))
	}
	cores := r.o.cores()
	r.o.BLAS.SetThreads(max(1, cores/min(most, cores)))
}

// saveAfter saves a pass that ended early with err, unless what ended it was a failure to save. A failure to save now is
// worse news than the end, and takes its place.
func (r *runner) saveAfter(err error, p *pass) error {
	var failed *saveError
	if errors.As(err, &failed) {
		return err
	}
	if saving := r.save(p); saving != nil {
		return saving
	}
	return err
}

// newFeeder opens a session that reads what the pass needs, and makes its accumulators or restores them.
func (r *runner) newFeeder(p *pass) (*feeder, error) {
	p.seed = r.plan.Study.Seed
	layers, prediction := p.layers()
	p.batch = r.plan.Study.batchFor(p, layers)
	f := &feeder{pass: p, cores: r.o.cores(), prediction: prediction, layerIndex: map[string]int{}, accs: r.accs,
		scratch: map[string]tensor.Tensor{}}
	for i, l := range layers {
		f.layerIndex[l.Name] = i
	}
	var err error
	if f.session, err = p.model.model.NewSession(layers, prediction); err != nil {
		return nil, fmt.Errorf("model %s: %w", p.model.spec.Name, err)
	}
	if f.clean, err = f.session.NewBuffers(p.batch); err == nil {
		f.moved, err = f.session.NewBuffers(p.batch)
	}
	for _, t := range p.all() {
		if err == nil {
			r.accs[t], err = r.accumulator(t)
		}
	}
	if err != nil {
		f.session.Close()
		return nil, err
	}
	return f, nil
}

// accumulator makes a task's accumulator, with the state that an earlier run saved.
func (r *runner) accumulator(t *task) (measure.Accumulator, error) {
	acc, err := t.cell.Measure.New(t.site)
	if err != nil || t.stored == nil {
		return acc, t.explainNil(err)
	}
	f, err := openState(r.folder.state(t.cell, r.o.Part))
	if errors.Is(err, os.ErrNotExist) { // another run of the study has finished the cell meanwhile
		t.seen, t.stored = 0, nil
		return acc, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.close()
	if err := t.restore(acc, f); err != nil {
		return nil, err
	}
	t.seen = f.entry(t.site.Layer.Name).Seen // another run may have saved since this one began
	return acc, nil
}

func (t *task) explainNil(err error) error {
	if err == nil {
		return nil
	}
	return t.explain(err)
}

// restore reads the task's state from a file.
func (t *task) restore(acc measure.Accumulator, f *stateFile) error {
	e := f.entry(t.site.Layer.Name)
	if e == nil || e.Scored || f.Cell != t.cell.Key || f.N != t.site.Layout.N {
		return fmt.Errorf("%s: %w", f.f.Name(), errDamaged)
	}
	raw, err := f.bytes(e)
	if err == nil {
		err = acc.UnmarshalBinary(raw)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; remove it to start that cell afresh", f.f.Name(), err)
	}
	return nil
}

// score computes the scores of the pass's tasks and writes the record of every cell that is complete.
func (r *runner) score(ctx context.Context, p *pass) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // so that the others stop where one fails
	type outcome struct {
		task   *task
		scored *finished
		err    error
	}
	tasks := p.all()
	outcomes := make(chan outcome, len(tasks)) // with room for all, so that nobody waits where this function has ended
	next := make(chan *task, len(tasks))
	accs := make(map[*task]measure.Accumulator, len(tasks))
	for _, t := range tasks {
		next <- t
		accs[t] = r.accs[t]
	}
	close(next)
	if r.o.BLAS != nil {
		r.o.BLAS.SetThreads(max(1, r.o.cores()/min(len(tasks), r.o.cores())))
	}
	for range min(r.o.cores(), len(tasks)) {
		go func() {
			for t := range next {
				if ctx.Err() != nil {
					return
				}
				scored, err := t.compute(accs[t])
				outcomes <- outcome{t, scored, err}
			}
		}()
	}
	for range tasks {
		var o outcome
		select {
		case o = <-outcomes:
		case <-ctx.Done(): // the eigenproblem of a large layer takes a minute, and whoever stops a run will not wait
			return context.Cause(ctx)
		}
		if o.err != nil {
			return o.err
		}
		o.task.scored = o.scored
		delete(r.accs, o.task)
		if err := r.completeCell(o.task.cell); err != nil {
			return err
		}
		if err := r.saveIfDue(p); err != nil {
			return err
		}
	}
	return r.saveIncomplete(p)
}

// completeCell writes a cell's record once all its layers have scores.
func (r *runner) completeCell(c *Cell) error {
	if slices.ContainsFunc(c.tasks, func(t *task) bool { return t.scored == nil }) {
		return nil
	}
	if err := r.folder.writeCell(c); err != nil {
		return &saveError{err}
	}
	c.done = true
	for _, t := range c.tasks {
		t.scored = nil // the folder holds it now
	}
	return nil
}

// saveIncomplete keeps what the pass has finished of cells that later passes complete.
func (r *runner) saveIncomplete(p *pass) error {
	if slices.ContainsFunc(p.all(), func(t *task) bool { return !t.cell.done }) {
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

func (e *saveError) Unwrap() error { return e.error }

// save writes the state of every unfinished cell of the pass.
func (r *runner) save(p *pass) error {
	saved := map[*Cell]bool{}
	for _, t := range p.all() {
		if saved[t.cell] || t.cell.done {
			continue
		}
		saved[t.cell] = true
		if err := r.saveCell(t.cell); err != nil {
			return &saveError{err}
		}
	}
	r.saved = time.Now()
	if err := r.writeRecord(false); err != nil {
		return &saveError{err}
	}
	return nil
}

func (r *runner) saveCell(c *Cell) error {
	path := r.folder.state(c, r.o.Part)
	index := &stateIndex{Cell: c.Key, Part: r.o.Part, N: c.Data.layout.N, Unreadable: c.Data.unreadable.names()}
	var kept []*task
	for _, t := range c.tasks {
		if t.scored != nil || r.accs[t] != nil || t.stored != nil {
			index.Entries = append(index.Entries, stateEntry{Layer: t.site.Layer.Name, Seen: t.seen, Scored: t.scored != nil})
			kept = append(kept, t)
		}
	}
	old, err := openState(path)
	if err == nil {
		defer old.close()
	} else if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, errDamaged) {
		return err
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

// writeTask writes a task's scores, the state of its accumulator, or what the old file holds of it.
func (r *runner) writeTask(w io.Writer, t *task, old *stateFile) error {
	if t.scored != nil {
		raw, err := t.scored.marshal(t)
		if err == nil {
			_, err = w.Write(raw)
		}
		return err
	}
	if acc := r.accs[t]; acc != nil {
		raw, err := acc.MarshalBinary()
		if err == nil {
			_, err = w.Write(raw)
		}
		return err
	}
	if old == nil || old.entry(t.site.Layer.Name) == nil {
		return fmt.Errorf("the state of layer %s has vanished", t.site.Layer.Name)
	}
	_, err := io.Copy(w, old.section(old.entry(t.site.Layer.Name)))
	return err
}
