package study

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/noether-ml/noether/features"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/linalg"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/spec"
)

// Options are what a run needs besides the study and what its scores do not depend on.
type Options struct {
	Runtime         *ort.Runtime
	Threads         int                 // of the engine; 0: all cores
	Device          string              // "" or "cpu", "cuda", ...
	BLAS            *linalg.Backend     // whose threads a run sets as it needs them; may be nil
	Part            Part                // the share of the samples to run; zero: all
	Only            []string            // models whose cells to run, the others being somebody else's; nil: all. A pair of models is the first one's. Such a run writes study.yaml, cells and states, and leaves the rest to Merge
	Complete        bool                // with a Part: finish the cells whose other parts are in the folder already, and leave less to Merge
	Every           time.Duration       // between saves of unfinished work; 0: a minute
	Progress        func(Progress)      // called after each batch; may be nil
	FailFast        bool                // end at the first failure, instead of going on with the rest
	Representations *features.Store     // what layers make of samples, kept from run to run; nil: the user's, see represent.Default
	Warn            func(string)        // called with what a user should know and no score carries; may be nil
	Log             *slog.Logger        // told what happens; may be nil
	Stats           *Stats              // filled while the run goes on; may be nil
	Memory          int64               // bytes that the process may hold before it is killed; 0: not known. Passes and batches are made to fit; scores do not depend on it
	Record          scores.EngineRecord // what computes the scores, for run.json
	Version         string              // of this program, for run.json
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
//
// A model, a data set or a cell that fails does not end the run: the rest is done, and the error is a *Failures beside
// the Result.
func Run(ctx context.Context, s *spec.Study, dir string, o Options) (result *Result, err error) {
	ctx, run := span(ctx, "run", attribute.String("study", s.Name), attribute.String("part", o.Part.String()))
	defer func() { end(run, err) }()
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
	r, err := newRunner(p, folder, o)
	if err != nil {
		return nil, err
	}
	if err := r.resume(); err != nil {
		return nil, err
	}
	if err := r.noteStart(); err != nil {
		return nil, err
	}
	if text := tight(p.Study, o.Memory); text != "" {
		o.warn("%s", text)
	}
	todo := passes(p.Cells, bound{roomFor(p.Study, o.Memory).accumulators, o.cores()}, o.Part)
	procedures := r.toDo()
	r.progress.Passes = len(todo) + len(procedures)
	for _, pass := range todo {
		r.progress.Total += pass.forwards()
	}
	for _, c := range procedures {
		r.progress.Total += c.work.procedure.Work(&c.work.job)
	}
	r.stats.total.Store(r.progress.Total)
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
		return &Result{Record: r.record(false)}, r.outcome()
	}
	return r.finish(ctx)
}

func newRunner(p *Plan, folder Folder, o Options) (*runner, error) {
	r := &runner{plan: p, folder: folder, o: o, log: newLogger(o.Log), stats: p.stats, accs: map[*task]accumulator{}, started: time.Now().UTC()}
	r.stats.cells.Store(int64(len(p.Cells)))
	r.stats.failures.Store(int64(len(p.failures.failed)))
	machine.ResetPeak()
	return r, r.openFailures()
}

// A runner is a run in progress.
type runner struct {
	plan     *Plan
	folder   Folder
	o        Options
	log      logger
	stats    *Stats
	peak     int64 // most bytes held in an earlier pass
	failures failureLog
	started  time.Time
	progress Progress
	accs     map[*task]accumulator // of the current pass
	store    *store                // of the current pass
	saved    time.Time             // when states were last saved
	missing  []scores.Missing      // what a merge could not complete
	states   stateFiles            // of the folders that are merged; nil where none is
	dirs     []string              // the folders that are merged
}

// runPass feeds a pass and scores what is complete. What fails in it is given up, and the rest tried again without it.
func (r *runner) runPass(ctx context.Context, p *pass) (err error) {
	ctx, pass := span(ctx, "pass", attribute.String("models", p.title()), attribute.String("data", p.data().spec.Name))
	defer func() { end(pass, err) }()
	r.peak = max(r.peak, machine.PeakMemory())
	machine.ResetPeak()
	defer func() { r.store.close() }()
	after := r.progress.Done + p.forwards()
	for p.dropFailed(); len(p.all()) > 0; p.dropFailed() {
		f, err := r.feedPass(ctx, p)
		if err == nil {
			break
		}
		err = r.saveAfter(err, p)
		if ctx.Err() != nil || r.o.FailFast || isSaveError(err) {
			return err
		}
		if err := r.failPass(p, f.inHand(), err); err != nil {
			return err
		}
		clear(r.accs)
	}
	r.progress.Done = after
	r.stats.done.Store(after)
	err = r.closePass(ctx, p)
	clear(r.accs)
	return err
}

// feedPass walks through the samples of a pass.
func (r *runner) feedPass(ctx context.Context, p *pass) (*feeder, error) {
	r.log.Info("pass", "number", r.progress.Pass, "of", r.progress.Passes, "models", p.title(), "data", p.data().spec.Name,
		"views", len(p.views), "from", p.start(), "to", p.hi)
	ctx, feed := span(ctx, "feed")
	defer feed.End()
	r.store.close()
	r.store = &store{dir: r.folder.path("states")}
	opened := r.stats.during(opening)
	f, err := r.newFeeder(p)
	opened()
	if err != nil {
		return nil, err
	}
	r.shareCores(p)
	if r.saved.IsZero() {
		r.saved = time.Now()
	}
	r.progress.Model, r.progress.Data = p.title(), p.data().spec.Name
	err = f.run(ctx, func(forwards int) error {
		r.progress.Done += int64(forwards)
		r.stats.done.Store(r.progress.Done)
		if r.o.Progress != nil {
			r.o.Progress(r.progress)
		}
		return r.saveIfDue(p)
	})
	if closing := f.close(); err == nil {
		err = closing // before the scores, which want the memory
	}
	p.dropFailed()
	return f, err
}

// closePass scores what a pass has gathered; what a shard has gathered is saved for the merge.
func (r *runner) closePass(ctx context.Context, p *pass) error {
	if len(p.all()) == 0 {
		return nil
	}
	if r.o.Part.Whole() {
		if err := r.score(ctx, p); err != nil {
			return r.saveAfter(err, p)
		}
		return nil
	}
	if err := r.save(p); err != nil {
		return err
	}
	for _, t := range p.all() {
		r.folder.removeFailures(t.cell.Key + "." + r.o.Part.String())
	}
	return nil
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
	r.shareBLAS(min(most, r.o.cores()))
}

// shareBLAS divides the cores between so many that use the BLAS side by side.
func (r *runner) shareBLAS(workers int) {
	if r.o.BLAS != nil && workers > 0 {
		r.o.BLAS.SetThreads(max(1, r.o.cores()/workers))
	}
}

// newFeeder opens sessions that read what the pass needs, and makes its accumulators or restores them.
func (r *runner) newFeeder(p *pass) (*feeder, error) {
	p.seed = r.plan.Study.Seed
	p.batch = batchFor(r.plan.Study, p, roomFor(r.plan.Study, r.o.Memory))
	f := &feeder{pass: p, cores: r.o.cores(), accs: r.accs, stats: r.stats, fail: r.failCell}
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
		if err := r.addAccumulator(t); err != nil {
			f.close()
			return nil, err
		}
	}
	return f, nil
}

// addAccumulator makes or restores a task's accumulator. That it cannot be made is its cell's failure.
func (r *runner) addAccumulator(t *task) error {
	if t.cell.failed {
		return nil
	}
	var acc accumulator
	err := guarded(func() (err error) {
		acc, err = r.accumulator(t)
		return err
	})
	switch {
	case isSaveError(err):
		return err
	case err != nil:
		return r.failCell(t.cell, t.layer(), nil, err)
	}
	r.accs[t] = acc
	return nil
}
