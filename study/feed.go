package study

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/tensor"
)

// A feeder runs a pass: it holds the engine's sessions, the accumulators, and what one batch looks like.
type feeder struct {
	*pass
	cores   int
	readers []*reader // of the pass's models, in their order
	accs    map[*task]accumulator
	stats   *Stats
	fail    func(c *Cell, layer string, inputs []string, cause error) error
	hand    []string // names of the samples that are being worked on
}

// inHand are the names of the samples that were being worked on when a pass ended.
func (f *feeder) inHand() []string {
	if f == nil {
		return nil
	}
	return f.hand
}

// living are the tasks of a view whose cells have not been given up. (The pass keeps its list while it is fed: who prepares
// the next batches reads it too.)
func (f *feeder) living(view int) []*task {
	var out []*task
	for _, t := range f.tasks[view] {
		if !t.cell.failed {
			out = append(out, t)
		}
	}
	return out
}

func (f *feeder) dead() bool {
	return !slices.ContainsFunc(f.all(), func(t *task) bool { return !t.cell.failed })
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

// run feeds every task of the pass from its start to its end. After each batch it calls tick with the samples that the
// engine has run; an error of tick ends the pass, as a cancelled context does, and leaves every accumulator in a
// state that can be saved. A cell whose accumulator fails is given up, and the rest goes on.
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
		f.stats.add(waiting, start)
		if !more {
			break
		}
		if f.dead() {
			return nil
		}
		f.hand = item.names
		n, err := f.feed(ctx, item)
		if err != nil {
			return err
		}
		if err := tick(n); err != nil {
			return err
		}
	}
	f.hand = nil
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := stream.err(); err != nil {
		return err
	}
	for _, t := range f.all() {
		t.seen = f.hi
	}
	return nil
}

// feed runs one prepared item: the clean batch, or the batch under one view.
func (f *feeder) feed(ctx context.Context, it *load) (forwards int, err error) {
	if it.view != cleanView && len(f.living(it.view)) == 0 {
		return 0, nil
	}
	for i, r := range f.readers {
		if len(it.inputs) == 0 || len(it.inputs[i]) == 0 {
			continue
		}
		start := time.Now()
		err := r.run(ctx, it.inputs[i], it.view != cleanView)
		f.stats.add(engine, start)
		if err != nil {
			return 0, &modelError{r.model, err}
		}
		forwards += len(it.inputs[i])
	}
	if it.view == cleanView {
		return forwards, nil
	}
	return forwards, f.update(it)
}

// update gives every task of the item's view its batch. Tasks are independent of each other, so they share the cores.
func (f *feeder) update(it *load) error {
	defer f.stats.during(measuring)()
	tasks := f.living(it.view)
	if f.views[it.view].on == "activations" {
		f.moveActivations(it)
	}
	errs := make([]error, len(tasks))
	var group errgroup.Group
	group.SetLimit(f.cores)
	for i, t := range tasks {
		group.Go(func() error {
			errs[i] = guarded(func() error { return f.updateTask(t, it) })
			return nil
		})
	}
	group.Wait()
	for i, t := range tasks {
		if errs[i] != nil { // of no further use: what was saved of it before is what remains
			delete(f.accs, t)
			t.seen = 0
			if t.stored != nil {
				t.seen = t.stored.Seen
			}
		}
	}
	for _, err := range errs {
		if isSaveError(err) {
			return err
		}
	}
	for _, i := range inDepth(tasks, errs) {
		if err := f.fail(tasks[i].cell, tasks[i].layer(), it.names, errs[i]); err != nil {
			return err
		}
	}
	return nil
}

// inDepth lists the errors, those of the shallowest layer first and those of predictions last: NaN spreads with depth,
// and where it arose is what a user wants to know.
func inDepth(tasks []*task, errs []error) []int {
	depth := func(i int) int {
		if d := tasks[i].depth(); d >= 0 {
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

func (f *feeder) updateTask(t *task, it *load) error {
	from, _ := slices.BinarySearch(it.place, t.seen)
	if end := len(it.place); from < end {
		var z []tensor.Tensor
		for _, r := range t.readings() {
			z = append(z, f.reader(r).tensor(r, f.views[it.view]).Slice(from, end))
		}
		if err := f.accs[t].update(places{it.place[from:], it.index[from:], it.label[from:]}, z); err != nil {
			return t.explain(it.named(err))
		}
	}
	t.seen = max(t.seen, it.end)
	return nil
}

func (f *feeder) reader(r reading) *reader { return f.readers[slices.Index(f.models, r.model)] }

// moveActivations applies the view's Ops to the clean feature maps that its tasks read moved, each once.
func (f *feeder) moveActivations(it *load) {
	type key struct {
		reader *reader
		layer  string
	}
	done := map[key]bool{}
	for _, t := range f.tasks[it.view] {
		for _, r := range t.readings() {
			if k := (key{f.reader(r), r.layer.Name}); r.moved && !done[k] {
				done[k] = true
				k.reader.moveActivation(r.layer, it.ops)
			}
		}
	}
}
