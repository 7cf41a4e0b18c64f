package run

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/noether-ml/noether/internal/study/internal/guard"
	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/results"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/internal/unsaved"
)

// Run computes the missing cells of a study (each a measure for one model, data set, transformation
// value and trial) in a run folder, then writes scores.csv, scores.parquet and run.json. If it is
// interrupted, finished work stays and the next Run continues from the last save. After a cancelled
// context Run saves once more; after a kill or on a full disk the work since the last save is lost.
// With a shard, a part of the samples (Options.Shard), it saves states, the accumulators or
// checkpoints of unfinished cells. With some of the models (Options.Only) it saves cells. Merge
// then writes the tables.
//
// A failed model, data set or cell does not end the run. Run then returns a *Failures beside the
// Result.
func Run(ctx context.Context, s *spec.Study, dir string, o plan.Options) (result *results.Result, err error) {
	ctx, span := telemetry.Span(ctx, "run", attribute.String("study", s.Name), attribute.String("part", o.Shard.String()))
	defer func() { telemetry.EndSpan(span, err) }()
	if !o.Shard.Whole() || o.Only != nil {
		if err := s.WholeRun(); err != nil {
			return nil, err
		}
	}
	folder, err := results.Create(dir, o.Warnf)
	if err != nil {
		return nil, err
	}
	if text := folder.DecoderWarning(o.Record.JPEG); text != "" {
		o.Warnf("%s", text)
	}
	for {
		result, more, err := runPlan(ctx, s, folder, o)
		if !more || err != nil {
			return result, err
		}
		o.Replace = false // the folder now holds cells of this study
	}
}

// runPlan runs the study as it is. If it then has values for a further round of a search, more is
// true, and there is no result.
func runPlan(ctx context.Context, s *spec.Study, folder results.Folder, o plan.Options) (result *results.Result, more bool, err error) {
	plan, err := plan.New(ctx, s, o)
	if err != nil {
		return nil, false, err
	}
	defer plan.Close()
	if err := folder.CheckStudy(plan, o.Replace); err != nil {
		return nil, false, err
	}
	return execute(ctx, plan, folder, o)
}

// refine adds the values of a further round to the transformations with `values: auto`. A failure,
// on which the choice may depend, ends the search; a later run repeats it.
func (r *runner) refine() (more bool, err error) {
	if len(r.Plan.Study.Searches()) == 0 || r.Outcome() != nil {
		return false, nil
	}
	cells, err := r.Finished()
	if err != nil {
		return false, err
	}
	return r.Plan.Study.Refine(cells)
}

// execute runs a plan in its folder: first passes, each of which reads the samples once for several
// measures, then procedures, the measures that work in steps. See runPlan for more.
func execute(ctx context.Context, p *plan.Plan, folder results.Folder, o plan.Options) (result *results.Result, more bool, err error) {
	w, err := results.NewWriter(p, folder, o)
	if err != nil {
		return nil, false, err
	}
	defer func() {
		if closing := w.Close(); err == nil {
			err = results.SaveError(closing)
		}
	}()
	r := &runner{Writer: w, accs: map[*plan.Task]plan.Accumulator{}, timer: newSaveTimer(o.SaveInterval, o.SaveFraction), recorded: time.Now()}
	limits := plan.LimitsOf(p.Study, &o)
	r.parallel = newParallelism(plan.Passes(p.Cells, limits, o.Shard), o.Workers()) // before Resume marks finished tasks, which are in no pass
	if err := r.Resume(); err != nil {
		return nil, false, err
	}
	passes := plan.Passes(p.Cells, limits, o.Shard)
	procedures := p.PendingProcedures(o.Shard)
	if len(passes) == 0 {
		if more, err := r.refine(); more || err != nil {
			return nil, more, err
		}
	}
	r.progress.Passes = len(passes) + len(procedures)
	if r.progress.Passes == 0 && o.Shard.Whole() && o.Only == nil {
		// Unchanged returns nil unless the folder holds the result with all files intact.
		if result := r.Unchanged(); result != nil {
			return result, false, nil
		}
	}
	if err := r.WriteStart(); err != nil {
		return nil, false, err
	}
	if text := plan.MemoryWarning(p.Study, o.Memory); text != "" {
		o.Warnf("%s", text)
	}
	if r.progress.Passes > 0 {
		r.ForgetRecords() // frees the scores of finished cells, which Finish reads again
	}
	for _, pass := range passes {
		r.progress.Total += pass.Forwards()
	}
	for _, c := range procedures {
		r.progress.Total += c.Procedure.Method.Work(&c.Procedure.Job)
	}
	r.Stats.Total.Store(r.progress.Total)
	for i, pass := range passes {
		r.progress.Pass = i + 1
		if err := r.runPass(ctx, pass); err != nil {
			return nil, false, err
		}
	}
	if len(passes) > 0 {
		if more, err := r.refine(); more || err != nil {
			return nil, more, err
		}
	}
	for _, c := range procedures {
		r.progress.Pass++
		if err := r.runProcedure(ctx, c); err != nil {
			return nil, false, err
		}
	}
	if !o.Shard.Whole() && o.Complete {
		if err := r.CompleteCells(ctx); err != nil {
			return nil, false, err
		}
	}
	if err := r.writeFeatureMaps(ctx); err != nil {
		return nil, false, err
	}
	if !o.Shard.Whole() || o.Only != nil {
		return &results.Result{Record: r.Record(false)}, false, r.Outcome()
	}
	decoders := &decoders{}
	defer decoders.close()
	r.Decode = decoders.decode
	result, err = r.Finish(ctx)
	return result, false, err
}

// runPass feeds a pass to its accumulators, and scores the complete cells. If a part of the pass
// fails, the rest is tried again without it.
func (r *runner) runPass(ctx context.Context, p *plan.Pass) (err error) {
	ctx, pass := telemetry.Span(ctx, "pass", attribute.String("models", p.Title()), attribute.String("data", p.Data().Entry.Name))
	defer func() { telemetry.EndSpan(pass, err) }()
	defer unsaved.Hold(ctx)() // when ctx ends, the program waits until the states are saved
	r.StartPass()
	defer func() { r.store.Close() }()
	doneAfter := r.progress.Done + p.Forwards()
	for p.DropFailed(); len(p.AllTasks()) > 0; p.DropFailed() {
		f, err := r.feedPass(ctx, p)
		if err != nil {
			err = r.saveAfter(err, p) // saves the states, and returns err or the error of saving
		} else if err = checkModels(ctx, p.Models); err == nil {
			break
		}
		if text := p.Retry(err); text != "" && ctx.Err() == nil && !results.IsSaveError(err) {
			r.Options.Warnf("%s: %s", p.Title(), text)
			clear(r.accs)
			continue
		}
		if ctx.Err() != nil || r.Options.FailFast || results.IsSaveError(err) {
			return err
		}
		if err := r.failPass(p, f.currentSamples(), err); err != nil {
			return err
		}
		clear(r.accs)
	}
	r.progress.Done = doneAfter
	r.Stats.Done.Store(doneAfter)
	err = r.closePass(ctx, p)
	clear(r.accs)
	return err
}

// feedPass feeds the samples of a pass to its tasks, each the work of one accumulator.
func (r *runner) feedPass(ctx context.Context, p *plan.Pass) (*feeder, error) {
	r.Log.Info("pass", "number", r.progress.Pass, "of", r.progress.Passes, "models", p.Title(), "data", p.Data().Entry.Name,
		"views", len(p.Views), "from", p.Start(), "to", p.Hi)
	ctx, feed := telemetry.Span(ctx, "feed")
	defer feed.End()
	r.store.Close()
	r.store = &results.Store{Dir: r.Folder.Path("states")}
	stopTimer := r.Stats.During(telemetry.Opening)
	f, err := r.newFeeder(p)
	stopTimer()
	if err != nil {
		return nil, err
	}
	r.Options.ShareBLAS(r.parallel.feeding)
	r.progress.Model, r.progress.Data = p.Title(), p.Data().Entry.Name
	r.progress.Samples, r.progress.AllSamples, r.progress.Scored, r.progress.ToScore = 0, p.Size(), 0, 0
	err = f.run(ctx, func(forwards int) error {
		r.progress.Done += int64(forwards)
		r.Stats.Done.Store(r.progress.Done)
		r.progress.Samples = p.Size() - (p.Hi - f.end)
		r.report()
		return r.saveIfDue(p)
	})
	if closing := f.close(); err == nil {
		err = closing // close the sessions first: scoring needs the memory
	}
	p.DropFailed()
	return f, err
}

// closePass scores the tasks of a pass. In a run of a shard it saves their states instead.
func (r *runner) closePass(ctx context.Context, p *plan.Pass) error {
	if len(p.AllTasks()) == 0 {
		return nil
	}
	if r.Options.Shard.Whole() {
		if err := r.score(ctx, p); err != nil {
			return r.saveAfter(err, p)
		}
		return nil
	}
	if err := r.save(context.Background(), p); err != nil {
		return err
	}
	for _, t := range p.AllTasks() {
		r.Folder.RemoveFailures(t.Cell.Key + "." + r.Options.Shard.String())
	}
	return nil
}

// newFeeder opens the sessions of a pass, and makes or restores its accumulators.
func (r *runner) newFeeder(p *plan.Pass) (*feeder, error) {
	f, err := r.openReaders(p)
	if err != nil {
		return nil, err
	}
	for _, t := range p.AllTasks() {
		if err := r.addAccumulator(t); err != nil {
			f.close()
			return nil, err
		}
	}
	return f, nil
}

// openReaders sets the batch size of a pass and opens its sessions.
func (r *runner) openReaders(p *plan.Pass) (*feeder, error) {
	p.Seed = r.Plan.Study.Seed
	p.SetBatch(r.Plan.Study, plan.DivideMemory(r.Plan.Study, &r.Options))
	f := &feeder{Pass: p, cores: r.Options.Workers(), accs: r.accs, stats: r.Stats, failCell: r.failAndFree, dropLayer: r.dropLayer}
	if !r.Options.FailFast {
		f.warnDropped = r.warnDropped
	}
	for _, m := range p.Models {
		layers, prediction := p.CopiedLayers(m)
		reader, err := newReader(m, p.Data(), layers, p.Reductions[m], p.Pools(m), prediction, p.Batch, p.Slots)
		if err != nil {
			f.close()
			return nil, err
		}
		f.readers = append(f.readers, reader)
	}
	return f, nil
}

// addAccumulator makes or restores a task's accumulator. An error fails only the task's cell,
// unless the folder cannot be written or Options.FailFast is set.
func (r *runner) addAccumulator(t *plan.Task) error {
	if t.Cell.Failed {
		return nil
	}
	var acc plan.Accumulator
	err := guard.Run(func() (err error) {
		acc, err = r.Accumulator(t, r.currentStore())
		return err
	})
	switch {
	case results.IsSaveError(err):
		return err
	case err != nil:
		return r.failAndFree(t.Cell, t.FirstLayer(), nil, err)
	}
	r.accs[t] = acc
	return nil
}
