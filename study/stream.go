package study

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A load is a batch made ready for the engine: the clean inputs (view -1), or the inputs under one view.
type load struct {
	view   int
	place  []int // of the samples that could be read, ascending
	index  []int
	label  []int
	inputs []tensor.Tensor
	ops    []transform.Op // for on: activations
	end    int            // places below this have been dealt with, unreadable samples among them
}

// A stream hands out loads, prepared ahead of the engine on other goroutines.
type stream struct {
	items chan *load
	fail  error
}

// err is why the stream ended early; valid once items is closed.
func (s *stream) err() error { return s.fail }

// prepare starts the stream of a pass. It holds at most a few batches of inputs at a time.
func (f *feeder) prepare(ctx context.Context) *stream {
	s := &stream{items: make(chan *load, 1)}
	go func() {
		defer close(s.items)
		s.fail = f.produce(ctx, s.items)
	}()
	return s
}

func (f *feeder) produce(ctx context.Context, out chan<- *load) error {
	start := f.start()
	indices := f.data.order[start:f.hi]
	next, stop := iter.Pull2(dataset.Read(ctx, f.data.source, indices, f.model.model.Frame(), dataset.ReadOptions{}))
	defer stop()
	for at := start; at < f.hi; at += f.batch {
		end := min(at+f.batch, f.hi)
		samples, clean, err := f.collect(next, at, end)
		if err != nil {
			return err
		}
		if err := send(ctx, out, clean); err != nil {
			return err
		}
		for i := range f.views {
			it, err := f.move(samples, clean, i)
			if err != nil {
				return err
			}
			if err := send(ctx, out, it); err != nil {
				return err
			}
		}
	}
	return nil
}

func send(ctx context.Context, out chan<- *load, it *load) error {
	select {
	case out <- it:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// collect reads the samples of the places from at to end.
func (f *feeder) collect(next func() (dataset.Sample, error, bool), at, end int) ([]dataset.Sample, *load, error) {
	it := &load{view: -1, end: end}
	var samples []dataset.Sample
	for place := at; place < end; place++ {
		s, err, ok := next()
		if !ok {
			return nil, nil, context.Canceled
		}
		if bad := (*dataset.BadSample)(nil); errors.As(err, &bad) {
			f.data.unreadable.add(bad.Name)
			if err := f.data.unreadable.tooMany(bad.Err); err != nil {
				return nil, nil, fmt.Errorf("data %s: %w", f.data.spec.Name, err)
			}
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("data %s: %w", f.data.spec.Name, err)
		}
		samples = append(samples, s)
		it.place = append(it.place, place)
		it.index = append(it.index, s.Index)
		it.label = append(it.label, s.Label)
		it.inputs = append(it.inputs, s.Input)
	}
	return samples, it, nil
}

// move prepares a clean batch under a view, the samples shared out over the cores.
func (f *feeder) move(samples []dataset.Sample, clean *load, view int) (*load, error) {
	it := &load{view: view, place: clean.place, index: clean.index, label: clean.label, end: clean.end}
	v := f.views[view]
	if v.Transform == "" {
		return it, nil
	}
	if v.on == "activations" {
		for _, s := range samples {
			it.ops = append(it.ops, f.drawFor(v, s.Index))
		}
		return it, nil
	}
	it.inputs = make([]tensor.Tensor, len(samples))
	var group errgroup.Group
	group.SetLimit(f.cores)
	for i, s := range samples {
		if v.law == nil {
			if s.Moved == nil {
				return nil, fmt.Errorf("data %s: sample %s has no partner", f.data.spec.Name, s.Name)
			}
			it.inputs[i] = *s.Moved
			continue
		}
		group.Go(func() error {
			it.inputs[i] = tensor.New(s.Input.Shape...)
			f.drawFor(v, s.Index).Apply(it.inputs[i], s.Input)
			return nil
		})
	}
	return it, group.Wait()
}
