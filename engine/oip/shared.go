package oip

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"unsafe"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/tensor"
)

// alignment of tensors in a region, in bytes.
const alignment = 64

type placement struct{ at, size int }

// sendShared sends a request whose tensors are in a region (the system shared-memory extension).
// done is false if the server and this process cannot share one, which err explains.
func (s *session) sendShared(ctx context.Context, inputs, outputs []*engine.Array, start, end int) (done bool, err error) {
	n := s.network
	total := 0
	place := func(size int) placement {
		p := placement{total, size}
		total += (size + alignment - 1) / alignment * alignment
		return p
	}
	var request wireRequest
	var data [][]byte
	for i, p := range n.metadata.Inputs {
		raw, err := appendBinary(nil, inputs[i], n.types[p.Name])
		if err != nil {
			return true, fmt.Errorf("input %s: %w", p.Name, err)
		}
		data = append(data, raw)
		request.Inputs = append(request.Inputs, wireTensor{Name: p.Name, Shape: inputs[i].Shape, Datatype: n.types[p.Name], at: place(len(raw))})
	}
	shapes := map[string][]int{}
	for _, o := range s.outputs {
		shapes[o.Name] = o.Shape
	}
	for _, name := range s.names {
		request.Outputs = append(request.Outputs, wireTensor{Name: name, at: place(4 * (end - start) * tensor.Size(shapes[name]))})
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
		request.Outputs[i].share(r)
	}
	body, err := json.Marshal(request)
	if err != nil {
		return true, err
	}
	a, err := n.client.send(ctx, http.MethodPost, n.client.model+"/infer", body, 0, 16<<20)
	if err != nil {
		return true, err
	}
	var got struct {
		Outputs []wireTensor `json:"outputs"`
	}
	if err := json.Unmarshal(a.body, &got); err != nil {
		return true, fmt.Errorf("%w: %w", errAnswer, err)
	}
	answered := map[string]wireTensor{}
	for _, t := range got.Outputs {
		answered[t.Name] = t
	}
	for k, o := range s.outputs {
		t, ok := answered[o.Name]
		if err := s.checkOutput(o, t.Shape, end-start, ok); err != nil {
			return true, err
		}
		if t.Datatype != "FP32" {
			return false, fmt.Errorf("output %s has the type %s", o.Name, t.Datatype)
		}
		for i, name := range s.names {
			if name == o.Name {
				copy(outputs[k].Tensor().Data[start*tensor.Size(o.Shape):], floats(r.memory[request.Outputs[i].at.at:][:request.Outputs[i].at.size]))
			}
		}
	}
	return true, ctx.Err()
}

func (t *wireTensor) share(r *region) {
	t.Parameters = map[string]any{"shared_memory_region": r.name, "shared_memory_byte_size": t.at.size, "shared_memory_offset": t.at.at}
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
