package run

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/noether-ml/noether/internal/study/internal/guard"
	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/results"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// A feeder runs a pass: it reads the samples once, runs the models on them, and feeds the
// activations to the accumulators of several tasks, such as a measure at one layer. The feeder
// holds the sessions of ONNX Runtime and the accumulators.
type feeder struct {
	*plan.Pass
	cores   int       // goroutines that feed accumulators
	readers []*reader // of the pass's models, in their order
	accs    map[*plan.Task]plan.Accumulator
	stats   *telemetry.Stats
	// failCell records the failure of a cell, or returns cause with Options.FailFast. inputs are the
	// names of the samples that were being read.
	failCell  func(c *plan.Cell, layer string, inputs []string, cause error) error
	dropLayer func(t *plan.Task, cause error) bool // drops the layer of a task and returns true, if other layers of its cell are measured
	// warnDropped warns that a comparison of several layers continues without one whose activations
	// are not finite. If it is nil, the comparison fails instead.
	warnDropped func(t *plan.Task, cause error)
	end         int      // all samples before this position in the study's random order have been fed
	current     []string // names of the samples in progress
}

// currentSamples returns the names of the samples in progress, for an error that ends a pass. A nil
// feeder, whose pass could not be opened, has none.
func (f *feeder) currentSamples() []string {
	if f == nil {
		return nil
	}
	return f.current
}

// pending reports whether a task is still fed: its cell has not failed, and its layer was not
// dropped.
func pending(t *plan.Task) bool { return !t.Cell.Failed && t.Scored == nil }

// pendingTasks returns the tasks of a view that are still fed. It leaves the pass's own list
// unchanged, because the goroutine that prepares batches reads it.
func (f *feeder) pendingTasks(view int) []*plan.Task {
	var out []*plan.Task
	for _, t := range f.Tasks[view] {
		if pending(t) {
			out = append(out, t)
		}
	}
	return out
}

// nonePending reports whether no task of the pass is still fed.
func (f *feeder) nonePending() bool { return !slices.ContainsFunc(f.AllTasks(), pending) }

// close closes the sessions.
func (f *feeder) close() error {
	var first error
	for _, r := range f.readers {
		if err := r.close(); first == nil {
			first = err
		}
	}
	return first
}

// run feeds every task of the pass. After each batch it calls tick with the number of samples in
// the batch's forward passes. An error of tick or a cancelled context ends the pass and leaves
// every accumulator in a state that can be saved. If an accumulator fails, its cell fails, and the
// others continue.
func (f *feeder) run(ctx context.Context, tick func(forwards int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	stream := f.prepare(ctx)
	next, wait := f.computed(ctx, stream)
	defer func() { // after run returns, neither the data are read nor the models run
		cancel()
		wait()
		for range stream.batches {
		}
	}()
	for {
		c, ok := next()
		if !ok {
			break
		}
		if f.nonePending() {
			return nil
		}
		f.current = c.names
		if c.err != nil {
			return c.err
		}
		if c.view != plan.CleanView { // the clean batch, which comes before those of views, is measured with each
			c.show(f.readers)
			if err := f.update(c.batch); err != nil {
				return err
			}
		}
		f.end = c.end
		if err := tick(c.forwards); err != nil {
			return err
		}
	}
	f.current = nil
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := stream.err(); err != nil {
		return err
	}
	for _, t := range f.AllTasks() {
		t.Fed = f.Hi // the position after the last sample of the pass
	}
	return nil
}

// update feeds a batch to every pending task of its view, in parallel.
func (f *feeder) update(b *batch) error {
	defer f.stats.During(telemetry.Measuring)()
	tasks := f.pendingTasks(b.view)
	if f.Views[b.view].On == "activations" { // what is transformed: these instead of the input
		f.transformActivations(b)
	}
	errs, dropped := make([]error, len(tasks)), make([][]error, len(tasks))
	var started, next atomic.Int64
	work := func() {
		if started.Add(1) > int64(f.cores) {
			return
		}
		for i := next.Add(1) - 1; i < int64(len(tasks)); i = next.Add(1) - 1 {
			errs[i] = guard.Run(func() (err error) {
				dropped[i], err = f.updateTask(tasks[i], b)
				return err
			})
		}
	}
	// Few goroutines, and this one among them: each new one must be woken, and grow its stack. One
	// more than needed is started, because Go leaves the newest goroutine to the thread that started
	// it: idle threads take it only after a sleep, which is long compared with a batch. The last to
	// run returns at once. Otherwise, while others wait for products of the BLAS, Go would run it
	// beside them, and it would evict their data from the cache.
	var group sync.WaitGroup
	if n := min(f.cores, len(tasks)); n > 1 {
		for range n {
			group.Go(work)
		}
	}
	work()
	group.Wait()
	for i, t := range tasks {
		for _, cause := range dropped[i] {
			f.warnDropped(t, cause)
		}
		if errs[i] != nil { // the accumulator is invalid; only its saved state remains
			delete(f.accs, t)
			t.Fed = t.Saved
		}
	}
	for _, err := range errs {
		if results.IsSaveError(err) || errors.Is(err, measure.ErrNeedsActivations) {
			return err
		}
	}
	for _, i := range errorOrder(tasks, errs) {
		if f.dropLayer(tasks[i], errs[i]) {
			tasks[i].Fed = f.Hi
			continue
		}
		if err := f.failCell(tasks[i].Cell, tasks[i].FirstLayer(), b.names, errs[i]); err != nil {
			return err
		}
	}
	return nil
}

// errorOrder returns the indices of the tasks that have an error, by the depth of their layers,
// predictions last. NaN spreads to deeper layers, so the first error names the layer where it
// arose.
func errorOrder(tasks []*plan.Task, errs []error) []int {
	depth := func(i int) int {
		if d := tasks[i].Depth(); d >= 0 {
			return d
		}
		return math.MaxInt
	}
	var order []int
	for i, err := range errs {
		if err != nil {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(depth(a), depth(b)) })
	return order
}

// updateTask feeds a batch to a task. It returns an error for each layer that the task dropped. If
// the task cannot continue, err is the error of the first layer, from which NaN may have spread to
// the others.
func (f *feeder) updateTask(t *plan.Task, b *batch) (dropped []error, err error) {
	from, _ := slices.BinarySearch(b.positions, t.Fed) // a resumed task has read the samples before t.Fed
	if end := len(b.positions); from < end {
		ids, acc := plan.SampleIDs{Position: b.positions[from:], Index: b.indices[from:], Label: b.labels[from:]}, f.accs[t]
		if len(b.ops) > 0 {
			ids.Ops = b.ops[from:]
		}
		if len(b.truth) > 0 { // labelled boxes or masks
			ids.Truth = b.truth[slices.Index(f.Models, t.Readings()[0].Model)][from:]
		}
		reader := f.reader(t.Readings()[0])
		if i, ok := reader.reductions.Of[t]; ok {
			if cause := t.FeedReduced(acc, ids, reader.transformed.Reduction(i).Slice(from, end)); cause != nil {
				return nil, t.Explain(b.nameSample(cause))
			}
			t.Fed = max(t.Fed, b.end)
			return nil, nil
		}
		var z []tensor.Tensor
		for _, r := range t.Readings() { // the tensors that it reads: layers or predictions, clean or transformed
			z = append(z, f.reader(r).tensor(r, f.Views[b.view]).Slice(from, end))
		}
		for cause := acc.Feed(ids, z); cause != nil; cause = acc.Feed(ids, z) {
			dropped = append(dropped, t.Explain(b.nameSample(cause)))
			// The grid is the list of pairs of layers that the task compares.
			if f.warnDropped == nil || !t.DropGridLayer(acc, cause) {
				return nil, dropped[0]
			}
		}
	}
	t.Fed = max(t.Fed, b.end)
	return dropped, nil
}

func (f *feeder) reader(r plan.Reading) *reader { return f.readers[slices.Index(f.Models, r.Model)] }

// transformActivations applies the view's transformations to the clean feature maps of each layer
// that its tasks read.
func (f *feeder) transformActivations(b *batch) {
	type key struct {
		reader *reader
		layer  string
	}
	done := map[key]bool{}
	for _, t := range f.Tasks[b.view] {
		for _, r := range t.Readings() {
			if k := (key{f.reader(r), r.Layer.Name}); r.Transformed && !done[k] {
				done[k] = true
				k.reader.transformActivation(r.Layer, b.ops)
			}
		}
	}
}
