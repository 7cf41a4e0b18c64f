package oip

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/tensor"
)

// Open implements engine.Network.
func (n *Network) Open(_ context.Context, r engine.Request) (engine.Session, error) {
	if len(r.Reductions) > 0 {
		return nil, errors.New("an inference server has no reductions")
	}
	s := &session{network: n, outputs: r.Outputs}
	for _, o := range r.Outputs {
		if !slices.Contains(s.names, o.Name) {
			s.names = append(s.names, o.Name)
		}
		s.values += tensor.Size(o.Shape)
	}
	return s, nil
}

type session struct {
	network *Network
	outputs []engine.Output
	names   []string // of the outputs, each once
	values  int      // of one sample

	mutex   sync.Mutex
	regions []*region // that no request uses
}

func (s *session) Inputs() []string {
	var names []string
	for _, p := range s.network.metadata.Inputs {
		names = append(names, p.Name)
	}
	return names
}

func (s *session) Bind(*engine.Array) error { return nil }

func (s *session) Close() error {
	var err error
	for _, r := range s.regions {
		err = errors.Join(err, r.close())
	}
	s.regions = nil
	return err
}

// Run sends the batch, in as many requests as the server needs.
func (s *session) Run(ctx context.Context, b engine.Batch) error {
	n := 0
	for i, a := range b.Inputs {
		if batched(s.network.metadata.Inputs[i]) || n == 0 && len(a.Shape) > 0 {
			n = a.Shape[0]
		}
	}
	for k, o := range s.outputs {
		if out := b.Outputs[k]; out.Data == nil {
			*out = *engine.NewArray(engine.Float, append([]int{n}, o.Shape...)...)
		}
	}
	return s.run(ctx, b, 0, n)
}

// run computes the samples from start to end of a batch.
func (s *session) run(ctx context.Context, b engine.Batch, start, end int) error {
	if most := int(s.network.largest.Load()); most > 0 && end-start > most {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(s.network.requests)
		for at := start; at < end; at += most {
			group.Go(func() error { return s.request(ctx, b, at, min(at+most, end)) })
		}
		return group.Wait()
	}
	return s.request(ctx, b, start, end)
}

// request sends some samples of a batch in one request. If the server refuses it but takes its
// first half, later requests are as small.
func (s *session) request(ctx context.Context, b engine.Batch, start, end int) error {
	size := end - start
	err := s.send(ctx, b, start, end)
	refused := (*refusal)(nil)
	divisible := slices.ContainsFunc(s.network.metadata.Inputs, batched)
	if !errors.As(err, &refused) || !refused.smaller() || size < 2 || !divisible {
		return err
	}
	half := (size + 1) / 2
	if smaller := s.request(ctx, b, start, start+half); smaller != nil {
		return err
	}
	for {
		most := s.network.largest.Load()
		if most > 0 && most <= int64(half) || s.network.largest.CompareAndSwap(most, int64(half)) {
			break
		}
	}
	s.network.client.note(fmt.Sprintf("%s: %v: sending at most %d samples at once", s.network.metadata.Name, err, half))
	return s.run(ctx, b, start+half, end)
}

func batched(p engine.Port) bool { return len(p.Shape) > 0 && p.Shape[0].Size < 0 }

func (s *session) send(ctx context.Context, b engine.Batch, start, end int) error {
	arrays := make([]*engine.Array, len(b.Inputs))
	for i, a := range b.Inputs {
		arrays[i] = a
		if batched(s.network.metadata.Inputs[i]) {
			arrays[i] = samplesOf(a, start, end)
		}
	}
	if s.network.shares.Load() {
		done, err := s.sendShared(ctx, arrays, b.Outputs, start, end)
		if done {
			return err
		}
		s.network.shares.Store(false)
		s.network.client.note(fmt.Sprintf("%s: tensors are sent instead of shared: %v", s.network.metadata.Name, err))
	}
	// JSON takes up to 25 bytes for a value.
	limit := int64(end-start)*int64(s.values)*32 + 16<<20
	values, _, err := s.network.infer(ctx, arrays, s.names, limit)
	if err != nil {
		return err
	}
	for k, o := range s.outputs {
		got, ok := values[o.Name]
		if err := s.checkOutput(o, got.Shape, end-start, ok); err != nil {
			return err
		}
		copy(b.Outputs[k].Tensor().Data[start*tensor.Size(o.Shape):], got.Data)
	}
	return ctx.Err()
}

func (s *session) checkOutput(o engine.Output, shape []int, n int, answered bool) error {
	want := append([]int{n}, o.Shape...)
	switch {
	case !answered:
		return fmt.Errorf("%w: it has no output %q", errAnswer, o.Name)
	case !slices.Equal(shape, want) && (!o.Convert || tensor.Size(shape) != tensor.Size(want)):
		return fmt.Errorf("%w: output %s has the shape %v for a batch of %d, want %v", errAnswer, o.Name, shape, n, want)
	}
	return nil
}

// samplesOf returns samples of an array, without a copy.
func samplesOf(a *engine.Array, start, end int) *engine.Array {
	size := tensor.Size(a.Shape[1:])
	data := reflect.ValueOf(a.Data).Slice(start*size, end*size).Interface()
	return &engine.Array{Shape: append([]int{end - start}, a.Shape[1:]...), Data: data}
}
