package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/internal/study/internal/guard"
	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/results"
	"github.com/noether-ml/noether/internal/unsaved"
)

// runProcedure runs the procedure of a cell, and writes the record of the cell, the file of its
// scores. It records a failure of the procedure, and returns only errors that end the run.
func (r *runner) runProcedure(ctx context.Context, c *plan.Cell) error {
	if r.Folder.HasCell(c) { // a concurrent run of the study has finished it
		c.Done = true
		return nil
	}
	r.Options.ShareBLAS(1) // a procedure calls the BLAS from one goroutine, which gets all its threads
	job := c.Procedure.Job
	job.Checkpoint, job.Read = r.Checkpoint(c), readSamplesOf(c)
	// The checkpoint of a result that cells with other second models need too, such as an
	// inversion.
	job.Shared = func(key string) state.Checkpoint {
		return r.SharedCheckpoint(c, key)
	}
	job.Store = r.representations()
	o := r.Options
	job.Graphs, job.Threads = ort.Compiler{Runtime: o.Runtime, Options: ort.Options{Threads: o.Threads, Device: o.Device}}, o.Threads
	job.Engine = strings.TrimSpace(o.Runtime.Version() + " " + o.Device)
	before := r.progress.Done
	r.progress.Model, r.progress.Data = c.ModelNames(), c.Data.Entry.Name
	r.progress.Samples, r.progress.AllSamples, r.progress.Scored, r.progress.ToScore = 0, 0, 0, 0
	// done counts forward passes of one sample, as Method.Work does.
	job.Progress = func(done int64, note string) {
		r.progress.Done, r.progress.Note = before+done, note
		r.Stats.Done.Store(before + done)
		r.report()
	}
	r.Log.Info("procedure", "number", r.progress.Pass, "of", r.progress.Passes, "what", c.String())
	ctx, work := telemetry.Span(ctx, "procedure", attribute.String("what", c.String()))
	defer work.End()
	stopTimer := r.Stats.During(telemetry.Procedures)
	defer unsaved.Hold(ctx)() // when ctx ends, the program waits until the checkpoint is saved
	// The scores of single units and their tuning curves, if the procedure has any.
	units := r.NewUnitFiles(c)
	job.Units, job.Curves = units.AddUnits, units.AddCurves
	err := guard.Run(func() error {
		scored, err := c.Procedure.Method.Run(ctx, &job) // scores of each layer or pair of layers
		if err == nil {
			c.Procedure.Scored, err = c.Procedure.Gather(scored)
		}
		if err == nil {
			err = checkModels(ctx, c.Models())
		}
		if err == nil {
			err = units.Close()
		}
		return err
	})
	stopTimer()
	r.progress.Done, r.progress.Note = before+c.Procedure.Method.Work(&c.Procedure.Job), ""
	switch {
	case err == nil:
		c.Data.Redrawn.AddJob(ctx, &job) // counts random draws that the transformation rejected
		return r.Complete(c)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case results.IsSaveError(err):
		return err
	}
	return r.failAndFree(c, noLayer, nil, fmt.Errorf("%s: %w", c, err))
}

// representations returns the cache of activations. If it cannot be opened, it warns and returns
// nil.
func (r *runner) representations() *features.Store {
	if r.Options.FeatureCache == nil {
		var err error
		if r.Options.FeatureCache, err = features.Default(); err != nil {
			r.Options.Warnf("%v", err)
		}
	}
	return r.Options.FeatureCache
}

// readSamplesOf returns Job.Read of a cell: the function by which its procedure reads samples.
func readSamplesOf(c *plan.Cell) func(context.Context, []int, dataset.Frame) ([]dataset.Sample, error) {
	return func(ctx context.Context, indices []int, f dataset.Frame) ([]dataset.Sample, error) {
		return readProcedureSamples(ctx, c, indices, f)
	}
}

// readProcedureSamples reads samples of a procedure's data by their indices. Unreadable samples are
// recorded and left out; too many of them are an error.
func readProcedureSamples(ctx context.Context, c *plan.Cell, indices []int, f dataset.Frame) ([]dataset.Sample, error) {
	var out []dataset.Sample
	for s, err := range dataset.Read(ctx, c.Procedure.Job.Data, indices, f, dataset.ReadOptions{}) {
		if bad := (*dataset.BadSample)(nil); errors.As(err, &bad) {
			if err := c.Data.NoteUnreadable(ctx, bad, f); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("data %s: %w", c.Data.Entry.Name, err)
		}
		out = append(out, s)
	}
	return out, nil
}
