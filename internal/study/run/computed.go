package run

import (
	"context"
	"time"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/study/internal/guard"
	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/plan"
)

// A computedBatch is a batch for which the models of the pass have run. A batch holds clean inputs,
// or those of one view.
type computedBatch struct {
	*batch
	clean, transformed int // slots (indices of buffers) of the readers that hold its activations
	forwards           int // samples of its forward passes
	err                error
}

// slots returns the number of batches whose activations the readers hold.
func (f *feeder) slots() int {
	if len(f.readers) == 0 {
		return 1
	}
	return len(f.readers[0].cleanSlots)
}

// show makes the readers return the activations of the batch, until they are shown another one.
func (c *computedBatch) show(readers []*reader) {
	for _, r := range readers {
		r.clean, r.transformed = r.cleanSlots[c.clean], r.transformedSlots[c.transformed]
	}
}

// computed runs the models on the batches of a stream, which other goroutines prepare. next returns
// one batch after the other. On the CPU it runs the models when it is called, since measuring needs
// the same cores. If the readers have two slots, the models run on a batch while the caller
// measures the one before: of the three batches in progress one is decoded and transformed, one is
// computed by the device, and one is measured. next returns false after the last batch. wait, which
// must be called after ctx has ended, returns when no model runs any more.
func (f *feeder) computed(ctx context.Context, stream *stream) (next func() (*computedBatch, bool), wait func()) {
	slots := f.slots()
	last := computedBatch{} // with the slots of the last clean and the last transformed batch
	compute := func() (*computedBatch, bool) {
		start := time.Now()
		b, ok := <-stream.batches
		f.stats.Add(telemetry.Waiting, start)
		if !ok {
			return nil, false
		}
		if b.view == plan.CleanView {
			last.clean = (last.clean + 1) % slots
		} else {
			last.transformed = (last.transformed + 1) % slots
		}
		c := last
		c.batch = b
		c.forwards, c.err = f.runModels(ctx, &c)
		return &c, true
	}
	if slots == 1 {
		return compute, func() {}
	}
	ahead := make(chan *computedBatch)
	go func() {
		defer close(ahead)
		for {
			c, ok := compute()
			if !ok {
				return
			}
			select {
			case ahead <- c:
			case <-ctx.Done():
				return
			}
		}
	}()
	next = func() (*computedBatch, bool) {
		c, ok := <-ahead
		return c, ok
	}
	return next, func() {
		for range ahead {
		}
	}
}

// identity names the samples of a batch for models whose activations are recorded.
func (f *feeder) identity(b *batch) engine.Samples {
	s := engine.Samples{Index: b.indices}
	if b.view != plan.CleanView {
		s.View = f.Views[b.view].Path()
	}
	return s
}

// runModels runs the models of the pass on a batch and returns the number of samples in their
// forward passes. It skips a view without pending tasks.
func (f *feeder) runModels(ctx context.Context, c *computedBatch) (forwards int, err error) {
	if len(c.inputs) == 0 || c.view != plan.CleanView && f.slots() == 1 && len(f.pendingTasks(c.view)) == 0 {
		return 0, nil // with several slots, another goroutine changes what is pending
	}
	for i, r := range f.readers {
		if len(c.inputs[i]) == 0 {
			continue
		}
		start := time.Now()
		clean, transformed := r.cleanSlots[c.clean], r.transformedSlots[c.transformed]
		clean.Identify(f.identity(c.batch))
		transformed.Identify(f.identity(c.batch))
		err := guard.Run(func() error {
			switch {
			case c.view == plan.CleanView:
				return r.runInto(ctx, c.inputs[i], clean)
			case r.reduced != nil:
				return r.runReduced(ctx, c.inputs[i], f.Data().Layout.Partners(c.positions), clean, transformed)
			}
			return r.runInto(ctx, c.inputs[i], transformed)
		})
		f.stats.Add(telemetry.Engine, start)
		if err != nil {
			return 0, &modelError{r.model, err}
		}
		forwards += len(c.inputs[i])
	}
	return forwards, nil
}
