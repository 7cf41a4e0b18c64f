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
	return n.open(r)
}

func (n *Network) open(r engine.Request) (*session, error) {
	s := &session{network: n, outputs: r.Outputs}
	for i := range r.Outputs {
		o := &r.Outputs[i]
		if (o.Pool != nil || o.Keep) && !n.pools {
			return nil, errors.New("the server neither pools nor keeps activations")
		}
		s.names = append(s.names, wireName(o))
		s.parameters = append(s.parameters, parametersOf(o))
		s.values += tensor.Size(o.Shape)
		s.whole = s.whole || o.Keep
	}
	return s, s.reduce(r.Reductions)
}

type session struct {
	network    *Network
	outputs    []engine.Output // and reductions
	names      []string        // of the outputs in requests
	parameters []map[string]any
	values     int  // of one sample
	whole      bool // batches are not divided

	clean []string // layers whose clean activations reductions read

	mutex     sync.Mutex
	regions   []*region // that no request uses
	allocated []*region // memory of outputs
}

func (s *session) Inputs() []string {
	var names []string
	for _, p := range s.network.metadata.Inputs {
		names = append(names, p.Name)
	}
	return append(names, s.reductionInputs()...)
}

// Bind implements engine.Session. An array without elements is one that the server keeps.
func (s *session) Bind(a *engine.Array) error {
	if a.Data == nil && a.Bound == nil && s.whole {
		a.Bound = newKept(s.network)
	}
	return nil
}

func (s *session) Close() error {
	var err error
	for _, r := range append(s.regions, s.allocated...) {
		err = errors.Join(err, r.close())
	}
	s.regions, s.allocated = nil, nil
	return err
}

// Run sends the batch, in as many requests as the server needs.
func (s *session) Run(ctx context.Context, b engine.Batch) error {
	n := 0
	for i, p := range s.network.metadata.Inputs {
		if a := b.Inputs[i]; batched(p) || n == 0 && len(a.Shape) > 0 {
			n = a.Shape[0]
		}
	}
	for k, o := range s.outputs {
		if out := b.Outputs[k]; out.Data == nil && !o.Keep {
			*out = *engine.NewArray(engine.Float, append([]int{n}, o.Shape...)...)
		}
	}
	return s.run(ctx, b, 0, n)
}

// run computes the samples from start to end of a batch.
func (s *session) run(ctx context.Context, b engine.Batch, start, end int) error {
	if most := int(s.network.largest.Load()); most > 0 && end-start > most && !s.whole {
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
	if s.whole {
		return fmt.Errorf("%w: %w", engine.ErrDeviceMemory, err)
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
	arrays := slices.Clone(b.Inputs[:len(s.network.metadata.Inputs)])
	for i, a := range arrays {
		if batched(s.network.metadata.Inputs[i]) {
			arrays[i] = samplesOf(a, start, end)
		}
	}
	q := s.network.callOf(arrays)
	if len(s.clean) > 0 {
		q.inputs = append(q.inputs, wireInput{engine.PartnersInput, "INT32", b.Inputs[len(b.Inputs)-1]})
	}
	for k, name := range s.names {
		if !slices.ContainsFunc(q.outputs, func(t wireTensor) bool { return t.Name == name }) {
			q.outputs = append(q.outputs, wireTensor{Name: name, Parameters: s.parametersFor(b, k)})
		}
	}
	if s.network.shares.Load() {
		done, err := s.sendShared(ctx, q, b.Outputs, start, end)
		if done {
			return err
		}
		s.network.shares.Store(false)
		s.network.client.note(fmt.Sprintf("%s: tensors are sent instead of shared: %v", s.network.metadata.Name, err))
	}
	// JSON takes up to 25 bytes for a value.
	limit := int64(end-start)*int64(s.values)*32 + 16<<20
	values, _, err := s.network.infer(ctx, q, limit)
	if err != nil {
		return err
	}
	for k, o := range s.outputs {
		if o.Keep {
			continue
		}
		got, ok := values[s.names[k]]
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
