package oip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"unsafe"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/tensor"
)

// alignment of tensors in a region, in bytes.
const alignment = 64

// A placement is a part of a region, in bytes.
type placement struct {
	region   *region // nil: that of the request
	at, size int
}

// Allocate implements engine.Allocator, with a region of its own for each call.
func (s *session) Allocate(n int) []float32 {
	if n == 0 || !s.network.shares.Load() {
		return nil
	}
	r, err := newRegion(context.Background(), s.network.client, 4*n)
	if err != nil {
		return nil // the first request says why
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.allocated = append(s.allocated, r)
	return floats(r.memory)
}

// allocatedAt returns where values lie that Allocate has returned; ok is false for others.
func (s *session) allocatedAt(values []float32) (p placement, ok bool) {
	if len(values) == 0 {
		return placement{}, false
	}
	first := uintptr(unsafe.Pointer(unsafe.SliceData(values)))
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, r := range s.allocated {
		base := uintptr(unsafe.Pointer(unsafe.SliceData(r.memory)))
		if first >= base && first < base+uintptr(len(r.memory)) {
			return placement{r, int(first - base), 4 * len(values)}, true
		}
	}
	return placement{}, false
}

// sendShared sends a request whose tensors are in regions (the system shared-memory extension):
// outputs where Allocate has given them memory, all others in a region of the request. done is
// false if the server and this process cannot share one, which err explains.
func (s *session) sendShared(ctx context.Context, q call, outputs []*engine.Array, start, end int) (done bool, err error) {
	total := 0
	place := func(size int) placement {
		p := placement{nil, total, size}
		total += (size + alignment - 1) / alignment * alignment
		return p
	}
	var request wireRequest
	var data [][]byte
	for _, in := range q.inputs {
		raw, err := bytesOf(in.array, in.datatype)
		if err != nil {
			return true, fmt.Errorf("input %s: %w", in.name, err)
		}
		data = append(data, raw)
		request.Inputs = append(request.Inputs, wireTensor{Name: in.name, Shape: in.array.Shape, Datatype: in.datatype, at: place(len(raw))})
	}
	rows := make([][]float32, len(s.outputs)) // of the samples, by output
	for k, o := range s.outputs {
		if o.Keep {
			continue
		}
		size := tensor.Size(o.Shape)
		rows[k] = outputs[k].Tensor().Data[start*size : end*size]
	}
	for _, t := range q.outputs {
		k := slices.Index(s.names, t.Name)
		var ok bool
		if t.at, ok = s.allocatedAt(rows[k]); !ok {
			t.at = place(4 * len(rows[k]))
		}
		request.Outputs = append(request.Outputs, t)
	}
	r, err := s.region(ctx, total)
	if err != nil {
		return ctx.Err() != nil, err
	}
	defer func() {
		if err == nil {
			s.free(r)
		} else { // the server may still write to it
			err = errors.Join(err, r.close())
		}
	}()
	for i := range request.Inputs {
		copy(r.memory[request.Inputs[i].at.at:], data[i])
		request.Inputs[i].share(r)
	}
	for i := range request.Outputs {
		if !s.outputs[slices.Index(s.names, request.Outputs[i].Name)].Keep {
			request.Outputs[i].share(r)
		}
	}
	body, err := json.Marshal(request)
	if err != nil {
		return true, err
	}
	a, err := s.network.client.send(ctx, http.MethodPost, s.network.client.model+"/infer", body, 0, 16<<20)
	if err != nil {
		return true, err
	}
	answered, err := outputsOf(a)
	if err != nil {
		return true, err
	}
	for k, o := range s.outputs {
		if o.Keep {
			continue
		}
		t, ok := answered[s.names[k]]
		if err := s.checkOutput(o, t.Shape, end-start, ok); err != nil {
			return true, err
		}
		if t.Datatype != "FP32" {
			return false, fmt.Errorf("output %s has the type %s", o.Name, t.Datatype)
		}
		p := request.Outputs[slices.IndexFunc(request.Outputs, func(t wireTensor) bool { return t.Name == s.names[k] })].at
		if p.region == nil {
			p.region = r
		}
		copy(rows[k], floats(p.region.memory[p.at:][:p.size])) // nothing to do for values that lie there
	}
	return true, ctx.Err()
}

// outputsOf returns the outputs of an answer without tensors, by name.
func outputsOf(a answer) (map[string]wireTensor, error) {
	var got struct {
		Outputs []wireTensor `json:"outputs"`
	}
	if err := json.Unmarshal(a.body, &got); err != nil {
		return nil, fmt.Errorf("%w: %w", errAnswer, err)
	}
	answered := map[string]wireTensor{}
	for _, t := range got.Outputs {
		answered[t.Name] = t
	}
	return answered, nil
}

// share sets the parameters of a tensor in a region, by default r.
func (t *wireTensor) share(r *region) {
	if t.at.region != nil {
		r = t.at.region
	}
	t.Parameters = with(t.Parameters, map[string]any{"shared_memory_region": r.name, "shared_memory_byte_size": t.at.size, "shared_memory_offset": t.at.at})
}

// bytesOf returns the elements of an array as a datatype, little-endian, which is the order of bytes
// of this machine: see floats.
func bytesOf(a *engine.Array, name string) ([]byte, error) {
	if values, ok := a.Data.([]float32); ok && name == "FP32" {
		return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values)), nil
	}
	return appendBinary(nil, a, name)
}

// floats returns memory as float32, in the order of bytes of this machine, which is that of the
// protocol on all that Go supports here.
func floats(memory []byte) []float32 {
	if len(memory) == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/4)
}

func (s *session) region(ctx context.Context, size int) (*region, error) {
	s.mutex.Lock()
	for i, r := range s.regions {
		if len(r.memory) >= size {
			s.regions = append(s.regions[:i], s.regions[i+1:]...)
			s.mutex.Unlock()
			return r, nil
		}
	}
	small := s.regions
	s.regions = nil
	s.mutex.Unlock()
	var err error
	for _, r := range small {
		err = errors.Join(err, r.close())
	}
	if err != nil {
		return nil, err
	}
	return newRegion(ctx, s.network.client, size)
}

func (s *session) free(r *region) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.regions = append(s.regions, r)
}
