package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/results"
	"github.com/noether-ml/noether/measure"
)

const (
	// timedSamples is the number of samples of a pass that are run; two batches if these are more.
	timedSamples = 32
	// After engineTimeLimit, a batch that starts is the last, unless it is the first, and no
	// further view is transformed.
	engineTimeLimit = 4 * time.Second
	// timedBlocks is the number of blocks that accumulators are fed: one of each jackknife group.
	timedBlocks = 20
	// engineIdleRatio is the assumed time of the engine on idle cores, relative to its processor time
	// divided by the number of cores. It exceeds 1 because the engine does not keep all cores busy.
	engineIdleRatio = 1.2
)

// A passTime holds the times of a pass. read and engine are those of one sample.
type passTime struct {
	open   time.Duration                 // opening the sessions
	read   time.Duration                 // decoding a sample, and transforming it for each view
	engine map[*plan.Model]time.Duration // one forward pass
	peak   int64                         // peak memory of the process with all accumulators of the pass, in bytes
}

// A timedBatch is a clean batch, with its samples in each frame that models need.
type timedBatch struct {
	samples [][]dataset.Sample
	clean   *batch
}

// timePass is tryPass. Like a run, it tries again where the device cannot compute reductions: see
// plan.Pass.Retry.
func (e *estimator) timePass(ctx context.Context, p *plan.Pass) (passTime, error) {
	for {
		out, err := e.tryPass(ctx, p)
		if err == nil || ctx.Err() != nil || p.Retry(err) == "" {
			return out, err
		}
	}
}

// tryPass opens a pass, times a few batches of it, and times its tasks, except those of a shape
// that has been timed.
func (e *estimator) tryPass(ctx context.Context, p *plan.Pass) (passTime, error) {
	out := passTime{engine: map[*plan.Model]time.Duration{}}
	e.store = &results.Store{Dir: os.TempDir()}
	defer e.store.Close()
	start := time.Now()
	f, err := e.openReaders(p)
	if err != nil {
		return out, err
	}
	tasks, err := e.newTimedTasks(p)
	out.open = time.Since(start)
	if err == nil {
		err = f.timeBatches(ctx, tasks, &out)
	}
	f.close() // scoring begins without the sessions, as in a run
	for _, t := range tasks {
		if errors.Is(t.err, measure.ErrNeedsActivations) {
			err = t.err
		}
	}
	if err != nil {
		return out, err
	}
	e.scoreTimedTasks(ctx, tasks)
	var counted int64 // bytes of the accumulators that PeakMemory includes
	for _, t := range tasks {
		counted += t.task.Cost()
		if t.err == nil {
			e.addTime(t)
		}
	}
	out.peak = machine.PeakMemory() + max(0, p.Cost()-counted)
	return out, ctx.Err()
}

// timeBatches reads a few batches and runs them, clean and under the views of the tasks.
func (f *feeder) timeBatches(ctx context.Context, tasks []*timedTask, out *passTime) error {
	batches, err := f.readBatches(ctx, out)
	if err != nil {
		return err
	}
	views := []int{plan.CleanView}
	for _, t := range tasks {
		if !slices.Contains(views, t.view) {
			views = append(views, t.view)
		}
	}
	tally := engineTally{took: map[*plan.Model]time.Duration{}, samples: map[*plan.Model]int{}}
	start := time.Now()
	for k, b := range batches {
		last := k == len(batches)-1 || k > 0 && time.Since(start) > engineTimeLimit
		if k == 0 { // the first run of a session includes one-time work
			if err := f.runTimed(ctx, b.clean, &engineTally{}); err != nil {
				return err
			}
		}
		for _, view := range views {
			input := b.clean
			if view != plan.CleanView {
				if input, err = f.transformBatch(b.samples, b.clean, view); err != nil {
					return err
				}
			}
			if err := f.runTimed(ctx, input, &tally); err != nil {
				return err
			}
			f.copyReadings(tasks, view, input.ops)
		}
		f.feedTimedTasks(tasks, b.clean, k, len(batches), last)
		if last {
			break
		}
	}
	for m, n := range tally.samples {
		out.engine[m] = tally.took[m] / time.Duration(max(1, n))
	}
	return ctx.Err()
}

// readBatches reads the first samples of a pass, and times reading and transforming them.
func (f *feeder) readBatches(ctx context.Context, out *passTime) (batches []timedBatch, err error) {
	from := f.Start()
	to := min(f.Hi, max(from+timedSamples, from+2*f.Batch))
	w := f.newSampleReader(ctx, f.Data().Order.Range(from, to))
	defer w.stop()
	start, n := time.Now(), 0
	for at := from; at < to; at += f.Batch {
		samples, clean, err := w.collect(at, min(at+f.Batch, to))
		if err != nil {
			return nil, err
		}
		if len(clean.positions) > 0 {
			batches = append(batches, timedBatch{samples, clean})
			n += len(clean.positions)
		}
	}
	if n == 0 {
		return nil, fmt.Errorf("data %s: none of the first %d samples can be read", f.Data().Entry.Name, to-from)
	}
	out.read = time.Since(start) / time.Duration(n)
	first, view := batches[0], 0
	deadline := time.Now().Add(engineTimeLimit)
	// Transforming needs nothing but the processor.
	took, err := timeIdle(func(cpu time.Duration) time.Duration { return cpu }, func() error {
		for ; view < len(f.Views) && time.Now().Before(deadline); view++ {
			if _, err := f.transformBatch(first.samples, first.clean, view); err != nil {
				return err
			}
		}
		return nil
	})
	all := float64(len(f.Views)) / float64(max(1, view)) // the other views are assumed to take as long
	out.read += time.Duration(float64(took) * all / float64(len(first.clean.positions)))
	return batches, err
}

// An engineTally adds up the engine time of each model. The zero engineTally ignores times.
type engineTally struct {
	took    map[*plan.Model]time.Duration
	samples map[*plan.Model]int
}

// runTimed runs a batch on every model that it has inputs for, and adds the times to the tally.
func (f *feeder) runTimed(ctx context.Context, b *batch, tally *engineTally) error {
	for i, r := range f.readers {
		if len(b.inputs) == 0 || len(b.inputs[i]) == 0 {
			continue
		}
		took, err := timeIdle(func(cpu time.Duration) time.Duration {
			return time.Duration(engineIdleRatio * float64(cpu) / float64(f.cores))
		}, func() error {
			if b.view != plan.CleanView && r.reduced != nil {
				return r.runReduced(ctx, b.inputs[i], f.Data().Layout.Partners(b.positions), r.clean, r.transformed)
			}
			r.buffers(b.view != plan.CleanView).Identify(f.identity(b))
			return r.run(ctx, b.inputs[i], b.view != plan.CleanView)
		})
		if err != nil {
			return err
		}
		if tally.took != nil {
			tally.took[r.model] += took
			tally.samples[r.model] += len(b.inputs[i])
		}
	}
	if b.view != plan.CleanView && f.Views[b.view].On == "activations" {
		f.transformActivations(b)
	}
	return nil
}
