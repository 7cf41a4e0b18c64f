package run

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/study/internal/guard"
	"github.com/noether-ml/noether/study/plan"
	"github.com/noether-ml/noether/study/rundir"
	"github.com/noether-ml/noether/tensor"
)

const (
	timedSamples = 32              // samples of a pass that are run, if they take no longer than timedEngine
	timedEngine  = 4 * time.Second // for the batches of a pass, beyond two
	timedBlocks  = 20              // blocks of the layout that accumulators are fed: one of each group
)

// A passTime is what was timed of a pass. All times but open are for a sample.
type passTime struct {
	open   time.Duration // opening the sessions
	read   time.Duration // decoding a sample, and transforming it for each view
	engine map[*plan.Model]time.Duration
	peak   int64 // memory of the process, with all accumulators of the pass, in bytes
}

// A taskTime is the time of a task alone on one core.
type taskTime struct {
	feed  time.Duration // for a sample
	score time.Duration
}

// A trial is a task whose accumulator is fed a few batches to time it.
type trial struct {
	task  *plan.Task
	view  int
	acc   plan.Accumulator
	n     int           // samples fed
	took  time.Duration // feeding
	score time.Duration
	fail  error
}

// A timedBatch is a clean batch with its samples in every frame.
type timedBatch struct {
	samples [][]dataset.Sample
	clean   *batch
}

// timePass opens a pass, runs a few batches of it, and times the tasks whose shapes have not been
// timed.
func (e *estimator) timePass(ctx context.Context, p *plan.Pass) (passTime, error) {
	out := passTime{engine: map[*plan.Model]time.Duration{}}
	e.store = &rundir.Store{Dir: os.TempDir()}
	defer e.store.Close()
	start := time.Now()
	f, err := e.openReaders(p)
	if err != nil {
		return out, err
	}
	trials, err := e.newTrials(p)
	out.open = time.Since(start)
	if err == nil {
		err = f.timeBatches(ctx, trials, &out)
	}
	f.close() // scoring begins without the sessions, as in a run
	if err != nil {
		return out, err
	}
	e.scoreTrials(ctx, trials)
	var held int64
	for _, t := range trials {
		if t.fail == nil {
			name := t.task.Cell.Method.Name()
			e.timed[name] = append(e.timed[name], t.task)
			e.tasks[t.task.Shape()] = taskTime{t.took / time.Duration(max(1, t.n)), t.score}
		}
		held += t.task.Cost()
	}
	out.peak = machine.PeakMemory() + max(0, p.Cost()-held)
	return out, ctx.Err()
}

// newTrials opens an accumulator for each shape of task that has not been timed.
func (e *estimator) newTrials(p *plan.Pass) (trials []*trial, err error) {
	seen := map[string]bool{}
	for view, tasks := range p.Tasks {
		for _, t := range tasks {
			shape := t.Shape()
			if _, timed := e.tasks[shape]; timed || seen[shape] {
				continue
			}
			seen[shape] = true
			one := &trial{task: t, view: view}
			if err := guard.Run(func() (err error) { one.acc, err = t.Open(e.storeOf()); return err }); err != nil {
				return nil, t.Explain(err)
			}
			trials = append(trials, one)
		}
	}
	return trials, nil
}

// timeBatches reads a few batches and runs them, clean and under the views of the trials.
func (f *feeder) timeBatches(ctx context.Context, trials []*trial, out *passTime) error {
	batches, err := f.readBatches(ctx, out)
	if err != nil {
		return err
	}
	views := []int{plan.CleanView}
	for _, t := range trials {
		if !slices.Contains(views, t.view) {
			views = append(views, t.view)
		}
	}
	tally := engineTally{took: map[*plan.Model]time.Duration{}, samples: map[*plan.Model]int{}}
	start := time.Now()
	for k, b := range batches {
		last := k == len(batches)-1 || k > 0 && time.Since(start) > timedEngine
		if k == 0 { // the first run of a session includes one-time work
			if err := f.runTimed(ctx, b.clean, &engineTally{}); err != nil {
				return err
			}
		}
		for _, view := range views {
			it := b.clean
			if view != plan.CleanView {
				if it, err = f.move(b.samples, b.clean, view); err != nil {
					return err
				}
			}
			if err := f.runTimed(ctx, it, &tally); err != nil {
				return err
			}
			if view != plan.CleanView {
				f.feedTrials(trials, it, k, len(batches), last)
			}
		}
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
	w := f.newSampleReader(ctx, f.Data().Order[from:to])
	defer w.stop()
	start, n := time.Now(), 0
	for at := from; at < to; at += f.Batch {
		samples, clean, err := w.collect(at, min(at+f.Batch, to))
		if err != nil {
			return nil, err
		}
		if len(clean.place) > 0 {
			batches = append(batches, timedBatch{samples, clean})
			n += len(clean.place)
		}
	}
	if n == 0 {
		return nil, fmt.Errorf("data %s: none of the first %d samples can be read", f.Data().Entry.Name, to-from)
	}
	out.read = time.Since(start) / time.Duration(n)
	start = time.Now()
	first := batches[0]
	for view := range f.Views {
		if _, err := f.move(first.samples, first.clean, view); err != nil {
			return nil, err
		}
	}
	out.read += time.Since(start) / time.Duration(len(first.clean.place))
	return batches, nil
}

// An engineTally adds up the engine time of each model.
type engineTally struct {
	took    map[*plan.Model]time.Duration
	samples map[*plan.Model]int
}

// runTimed runs a batch on every model that it has inputs for.
func (f *feeder) runTimed(ctx context.Context, it *batch, tally *engineTally) error {
	for i, r := range f.readers {
		if len(it.inputs) == 0 || len(it.inputs[i]) == 0 {
			continue
		}
		clock := startClock()
		if err := r.run(ctx, it.inputs[i], it.view != plan.CleanView); err != nil {
			return err
		}
		if tally.took != nil {
			tally.took[r.model] += idleTime(clock.wall(), time.Duration(engineIdle*float64(clock.cpu())/float64(f.cores)))
			tally.samples[r.model] += len(it.inputs[i])
		}
	}
	if it.view != plan.CleanView && f.Views[it.view].On == "activations" {
		f.moveActivations(it)
	}
	return nil
}

// feedTrials feeds a batch, the k-th of so many, to the trials of its view. The samples stand for
// those of several blocks of the layout, so that every group of an interval is fed.
func (f *feeder) feedTrials(trials []*trial, it *batch, k, batches int, last bool) {
	layout := f.Data().Layout
	blocks := min(timedBlocks, layout.Blocks())
	from, to := k*blocks/batches, (k+1)*blocks/batches
	if last {
		to = blocks
	}
	clock, walls := startClock(), make([]time.Duration, len(trials))
	var group errgroup.Group
	group.SetLimit(f.cores)
	for i, t := range trials {
		if t.view != it.view || t.fail != nil {
			continue
		}
		group.Go(func() error {
			start := time.Now()
			for block := from; block < to && t.fail == nil; block++ {
				at := block * layout.Block
				n := min(len(it.place), layout.Block, layout.N-at)
				t.fail = guard.Run(func() error { return f.feedPlaces(t, it, at, n) })
				t.n += n
			}
			walls[i] = time.Since(start)
			return nil
		})
	}
	group.Wait()
	for i, d := range clock.shares(walls) {
		trials[i].took += d
	}
}

// feedPlaces feeds the first n samples of a batch to a trial as those of the places from at.
func (f *feeder) feedPlaces(t *trial, it *batch, at, n int) error {
	ids := plan.SampleIDs{Index: it.index[:n], Label: it.label[:n]}
	for i := range n {
		ids.Place = append(ids.Place, at+i)
	}
	var z []tensor.Tensor
	for _, r := range t.task.Readings() {
		z = append(z, f.reader(r).tensor(r, f.Views[it.view]).Slice(0, n))
	}
	return t.acc.Feed(ids, z)
}

// scoreTrials computes the scores of the trials, as many at once as there are cores.
func (e *estimator) scoreTrials(ctx context.Context, trials []*trial) {
	workers := min(e.Options.Cores(), len(trials))
	e.Options.ShareBLAS(workers)
	clock, walls := startClock(), make([]time.Duration, len(trials))
	var group errgroup.Group
	group.SetLimit(max(1, workers))
	for i, t := range trials {
		if t.fail != nil {
			continue
		}
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			start := time.Now()
			t.fail = guard.Run(func() error { _, err := t.task.Compute(t.acc); return err })
			walls[i], t.acc = time.Since(start), nil
			return nil
		})
	}
	group.Wait()
	for i, d := range clock.shares(walls) {
		trials[i].score = d
	}
}
