package study

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/scores"
)

// Options are what a run needs besides the study and what its scores do not depend on.
type Options struct {
	Runtime  *ort.Runtime
	Threads  int                 // of the engine; 0: all cores
	Device   string              // "" or "cpu", "cuda", ...
	BLAS     *linalg.Backend     // whose threads a run sets as it needs them; may be nil
	Part     Part                // the share of the samples to run; zero: all
	Only     []string            // models whose cells to run, the others being somebody else's; nil: all. A pair of models is the first one's. Such a run writes cells and states alone
	Complete bool                // with a Part: finish the cells whose other parts are in the folder already, and leave less to Merge
	Every    time.Duration       // between saves of unfinished work; 0: a minute
	Progress func(Progress)      // called after each batch; may be nil
	Warn     func(string)        // called with what a user should know and no score carries; may be nil
	Record   scores.EngineRecord // what computes the scores, for run.json
	Version  string              // of this program, for run.json
}

// Progress is how far a run has come, in samples that the engine has run or will run.
type Progress struct {
	Done, Total  int64
	Pass, Passes int // procedures counted as passes
	Model, Data  string
	Note         string // what a procedure has to say of itself, such as the distance that it has reached
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
	r := &runner{plan: p, folder: folder, o: o, accs: map[*task]accumulator{}, started: time.Now().UTC()}
	if err := r.resume(); err != nil {
		return nil, err
	}
	if err := r.noteProgress(); err != nil {
		return nil, err
	}
	todo := passes(p.Cells, int64(p.Study.Memory), o.Part)
	procedures := r.toDo()
	r.progress.Passes = len(todo) + len(procedures)
	for _, pass := range todo {
		r.progress.Total += pass.forwards()
	}
	for _, c := range procedures {
		r.progress.Total += c.work.procedure.Work(&c.work.job)
	}
	for i, pass := range todo {
		r.progress.Pass = i + 1
		if err := r.runPass(ctx, pass); err != nil {
			return nil, err
		}
	}
	for _, c := range procedures {
		r.progress.Pass++
		if err := r.runProcedure(ctx, c); err != nil {
			return nil, err
		}
	}
	if !o.Part.Whole() && o.Complete {
		if err := r.completeWhatIsThere(ctx); err != nil {
			return nil, err
		}
	}
	if !o.Part.Whole() || o.Only != nil {
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
	accs     map[*task]accumulator // of the current pass
	saved    time.Time             // when states were last saved
	missing  []scores.Missing      // what a merge could not complete
	states   stateFiles            // of the folders that are merged; nil where none is
	dirs     []string              // these folders
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
	r.progress.Model, r.progress.Data = p.title(), p.data().spec.Name
	err = f.run(ctx, func(forwards int) error {
		r.progress.Done += int64(forwards)
		if r.o.Progress != nil {
			r.o.Progress(r.progress)
		}
		return r.saveIfDue(p)
	})
	if closing := f.close(); err == nil {
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

// newFeeder opens sessions that read what the pass needs, and makes its accumulators or restores them.
func (r *runner) newFeeder(p *pass) (*feeder, error) {
	p.seed = r.plan.Study.Seed
	p.batch = r.plan.Study.batchFor(p)
	f := &feeder{pass: p, cores: r.o.cores(), accs: r.accs}
	for _, m := range p.models {
		layers, prediction := p.layers(m)
		reader, err := newReader(m, p.data(), layers, prediction, p.batch)
		if err != nil {
			f.close()
			return nil, err
		}
		f.readers = append(f.readers, reader)
	}
	for _, t := range p.all() {
		acc, err := r.accumulator(t)
		if err != nil {
			f.close()
			return nil, err
		}
		r.accs[t] = acc
	}
	return f, nil
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
	accs := make(map[*task]accumulator, len(tasks))
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
	if err := r.removeStates(c); err != nil {
		return &saveError{err}
	}
	c.done = true
	for _, t := range c.tasks {
		t.scored = nil // the folder holds it now
	}
	return nil
}
