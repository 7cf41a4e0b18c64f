package ort

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/noether-ml/noether/onnx"
)

// A placed is the copy of a Value in the memory of a device. It implements the interface Value of
// onnxruntime_go, here named binding, the Go bindings of ONNX Runtime. A run of the engine calls no
// method of that interface but GetInternals.
type placed struct {
	binding.Value // nil
	session       *Session
	handle        binding.ValueInternalData // holds the OrtValue
	newer         bool                      // a run has written it since the last Download
}

func (p *placed) GetInternals() *binding.ValueInternalData { return &p.handle }

// Place gives values memory on the session's device, where later runs read and write them. A value
// that is the input of many runs, or the output of one run and the input of the next, is then not
// copied each time. Upload copies its elements to the device, Download copies them back. For
// scalars, and on the CPU, Place, Upload and Download do nothing. Close the values before the
// session.
func (s *Session) Place(values ...*Value) error {
	if s.onCPU {
		return nil
	}
	for _, v := range values {
		if v.placed != nil || v.scalar != nil {
			continue // scalars are passed with each run
		}
		// exclusively: not during a run, where sessions take turns
		err := s.exclusively(context.Background(), func() error { return s.place(v) })
		if err != nil {
			return s.explain(fmt.Sprintf("placing a tensor of shape %v on the device", v.shape), err)
		}
	}
	return nil
}

// NewDeviceValue returns a float32 Value for outputs of the session that other runs on the same
// device read, and nothing else does: its elements are on the device only. On the CPU it is an
// ordinary Value. Close it before the session.
func (s *Session) NewDeviceValue(shape ...int) (*Value, error) {
	if s.onCPU || len(shape) == 0 {
		return s.runtime.NewValue(onnx.Float, shape...)
	}
	v := &Value{typ: onnx.Float, shape: slices.Clone(shape), data: []float32(nil), busy: new(atomic.Int32)}
	err := s.exclusively(context.Background(), func() error { return s.allocate(v) })
	if err != nil {
		return nil, s.explain(fmt.Sprintf("placing a tensor of shape %v on the device", v.shape), err)
	}
	return v, nil
}

func (s *Session) place(v *Value) error {
	if err := s.allocate(v); err != nil {
		return err
	}
	return v.copyTo(valueHandle(v.placed))
}

func (s *Session) allocate(v *Value) error {
	c := s.runtime.capi // functions of ONNX Runtime's C interface that the binding lacks
	if s.allocator == nil {
		memory := make([]pointer, len(s.inputs))
		if err := c.err(c.memoryOfInputs(sessionHandle(s.session), &memory[0], uintptr(len(memory)))); err != nil {
			return err
		}
		if err := c.err(c.createAllocator(sessionHandle(s.session), memory[0], &s.allocator)); err != nil {
			return err
		}
	}
	shape := make([]int64, len(v.shape))
	for i, d := range v.shape {
		shape[i] = int64(d)
	}
	var handle pointer
	if err := c.err(c.createTensor(s.allocator, &shape[0], uintptr(len(shape)), int32(v.typ), &handle)); err != nil {
		return err
	}
	v.placed = &placed{session: s}
	*(*pointer)(unsafe.Pointer(&v.placed.handle)) = handle // its only field
	return nil
}

func (v *Value) copyTo(to pointer) error { return v.placed.copy(valueHandle(v.bound), to) }

func (p *placed) copy(from, to pointer) error {
	c := p.session.runtime.capi
	return c.err(c.copyTensors(c.env, &from, &to, nil, 1))
}

// Upload copies the elements to the device on which v is placed. Call it after a change of the
// elements.
func (v *Value) Upload() error {
	if v.placed == nil {
		return nil
	}
	v.placed.newer = false
	err := v.placed.session.exclusively(context.Background(), func() error { return v.copyTo(valueHandle(v.placed)) })
	if err != nil {
		return v.placed.session.explain("copying a tensor to the device", err)
	}
	return nil
}

// Download copies what runs have written on the device to the elements. Call it before they are
// read.
func (v *Value) Download() error {
	if v.placed == nil || !v.placed.newer {
		return nil
	}
	err := v.placed.session.exclusively(context.Background(), func() error { return v.placed.copy(valueHandle(v.placed), valueHandle(v.bound)) })
	if err != nil {
		return v.placed.session.explain("copying a tensor from the device", err)
	}
	v.placed.newer = false
	return nil
}

func (p *placed) free() {
	_ = p.session.exclusively(context.Background(), func() error {
		p.session.runtime.capi.releaseValue(valueHandle(p))
		return nil
	})
}
