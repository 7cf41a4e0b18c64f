package run

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/study/internal/guard"
	"github.com/noether-ml/noether/study/internal/telemetry"
	"github.com/noether-ml/noether/study/plan"
	"github.com/noether-ml/noether/study/rundir"
	"github.com/noether-ml/noether/tensor"
)

// A feeder runs a pass: it holds the engine's sessions, the accumulators, and what one batch looks
// like.
type feeder struct {
	*plan.Pass
	cores   int
	readers []*reader // of the pass's models, in their order
	accs    map[*plan.Task]plan.Accumulator
	stats   *telemetry.Stats
	fail    func(c *plan.Cell, layer string, inputs []string, cause error) error
	current []string // names of the samples that are being worked on
}

// currentSamples are the names of the samples that were being worked on when a pass ended.
func (f *feeder) currentSamples() []string {
	if f == nil {
		return nil
	}
	return f.current
}

// pendingTasks are the tasks of a view whose cells have not been given up. (The pass keeps its list
// while it is fed: who prepares the next batches reads it too.)
func (f *feeder) pendingTasks(view int) []*plan.Task {
	var out []*plan.Task
	for _, t := range f.Tasks[view] {
		if !t.Cell.Failed {
			out = append(out, t)
		}
	}
	return out
}

func (f *feeder) allFailed() bool {
	return !slices.ContainsFunc(f.AllTasks(), func(t *plan.Task) bool { return !t.Cell.Failed })
}

// close frees the sessions.
func (f *feeder) close() error {
	var first error
	for _, r := range f.readers {
		if err := r.session.Close(); first == nil {
			first = err
		}
	}
	return first
}

// run feeds every task of the pass from its start to its end. After each batch it calls tick with
// the samples that the engine has run; an error of tick ends the pass, as a cancelled context does,
// and leaves every accumulator in a state that can be saved. A cell whose accumulator fails is
// given up, and the rest goes on.
func (f *feeder) run(ctx context.Context, tick func(forwards int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	stream := f.prepare(ctx)
	defer func() { // nobody reads the data once this has returned
		cancel()
		for range stream.items {
		}
	}()
	for {
		start := time.Now()
		item, more := <-stream.items
		f.stats.Add(telemetry.Waiting, start)
		if !more {
			break
		}
		if f.allFailed() {
			return nil
		}
		f.current = item.names
		n, err := f.feed(ctx, item)
		if err != nil {
			return err
		}
		if err := tick(n); err != nil {
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
		t.Seen = f.Hi
	}
	return nil
}

// feed runs one prepared item: the clean batch, or the batch under one view.
func (f *feeder) feed(ctx context.Context, it *batch) (forwards int, err error) {
	if it.view != plan.CleanView && len(f.pendingTasks(it.view)) == 0 {
		return 0, nil
	}
	for i, r := range f.readers {
		if len(it.inputs) == 0 || len(it.inputs[i]) == 0 {
			continue
		}
		start := time.Now()
		err := r.run(ctx, it.inputs[i], it.view != plan.CleanView)
		f.stats.Add(telemetry.Engine, start)
		if err != nil {
			return 0, &modelError{r.model, err}
		}
		forwards += len(it.inputs[i])
	}
	if it.view == plan.CleanView {
		return forwards, nil
	}
	return forwards, f.update(it)
}

// update gives every task of the item's view its batch. Tasks are independent of each other, so
// they share the cores.
func (f *feeder) update(it *batch) error {
	defer f.stats.During(telemetry.Measuring)()
	tasks := f.pendingTasks(it.view)
	if f.Views[it.view].On == "activations" {
		f.moveActivations(it)
	}
	errs := make([]error, len(tasks))
	var group errgroup.Group
	group.SetLimit(f.cores)
	for i, t := range tasks {
		group.Go(func() error {
			errs[i] = guard.Run(func() error { return f.updateTask(t, it) })
			return nil
		})
	}
	group.Wait()
	for i, t := range tasks {
		if errs[i] != nil { // of no further use: what was saved of it before is what remains
			delete(f.accs, t)
			t.Seen = t.Saved
		}
	}
	for _, err := range errs {
		if rundir.IsSaveError(err) {
			return err
		}
	}
	for _, i := range errorOrder(tasks, errs) {
		if err := f.fail(tasks[i].Cell, tasks[i].FirstLayer(), it.names, errs[i]); err != nil {
			return err
		}
	}
	return nil
}

// errorOrder lists the errors, those of the shallowest layer first and those of predictions last: NaN
// spreads with depth, and where it arose is what a user wants to know.
func errorOrder(tasks []*plan.Task, errs []error) []int {
	depth := func(i int) int {
		if d := tasks[i].Depth(); d >= 0 {
			return d
		}
		return math.MaxInt
	}
	var at []int
	for i, err := range errs {
		if err != nil {
			at = append(at, i)
		}
	}
	slices.SortStableFunc(at, func(a, b int) int { return cmp.Compare(depth(a), depth(b)) })
	return at
}

func (f *feeder) updateTask(t *plan.Task, it *batch) error {
	from, _ := slices.BinarySearch(it.place, t.Seen)
	if end := len(it.place); from < end {
		var z []tensor.Tensor
		for _, r := range t.Readings() {
			z = append(z, f.reader(r).tensor(r, f.Views[it.view]).Slice(from, end))
		}
		if err := f.accs[t].Feed(plan.SampleIDs{Place: it.place[from:], Index: it.index[from:], Label: it.label[from:]}, z); err != nil {
			return t.Explain(it.nameSample(err))
		}
	}
	t.Seen = max(t.Seen, it.end)
	return nil
}

func (f *feeder) reader(r plan.Reading) *reader { return f.readers[slices.Index(f.Models, r.Model)] }

// moveActivations applies the view's Ops to the clean feature maps that its tasks read moved, each
// once.
func (f *feeder) moveActivations(it *batch) {
	type key struct {
		reader *reader
		layer  string
	}
	done := map[key]bool{}
	for _, t := range f.Tasks[it.view] {
		for _, r := range t.Readings() {
			if k := (key{f.reader(r), r.Layer.Name}); r.Moved && !done[k] {
				done[k] = true
				k.reader.moveActivation(r.Layer, it.ops)
			}
		}
	}
}
