package ort

import (
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Value is a tensor that a session reads or writes in place: a type, a shape, and elements in
// Go's memory, the last axis varying fastest. Close it when it is no longer needed.
type Value struct {
	typ    onnx.Type
	shape  []int
	data   any           // a slice of an Element
	bound  binding.Value // the engine's tensor, which uses the memory of data
	scalar scalarCopy    // replaces bound for a tensor without axes, which binding copies
	placed *placed       // its copy on a device, such as a GPU; nil: none
	busy   *atomic.Int32 // number of runs that use it and did not end in time: see abandonAfter
}

// NewValue returns a Value of zeros.
func (r *Runtime) NewValue(t onnx.Type, shape ...int) (*Value, error) {
	for _, e := range elements {
		if e.typ == t {
			return e.newValue(t, shape)
		}
	}
	return nil, fmt.Errorf("making a tensor: element type %v is not supported", t)
}

// Wrap returns a Value that shares data: the engine reads and writes data itself. The length of
// data must be the product of shape. r is not used: it shows that the library is loaded.
func Wrap[T Element](r *Runtime, data []T, shape ...int) (*Value, error) {
	return wrap(typeOf(elementKind[T]{}), data, shape)
}

// Data returns the elements of v, shared, until Close. It panics if v has another type.
func Data[T Element](v *Value) []T { return v.data.([]T) }

// Type returns the type of the elements.
func (v *Value) Type() onnx.Type { return v.typ }

// Shape returns the shape, which is empty for a scalar. The caller must not change it.
func (v *Value) Shape() []int { return v.shape }

// Elements returns the elements, shared, as a slice of an Element.
func (v *Value) Elements() any { return v.data }

// Tensor returns a Value of float32 as a tensor that shares its elements, until Close. It panics if
// v has another type.
func (v *Value) Tensor() tensor.Tensor { return tensor.Tensor{Shape: v.shape, Data: Data[float32](v)} }

// Close frees what the engine holds for v. If a run that was stopped still uses it, it stays
// allocated. The elements are Go memory and stay valid.
func (v *Value) Close() error {
	if v == nil {
		return nil
	}
	if v.busy.Load() == 0 {
		if v.bound != nil {
			_ = v.bound.Destroy() // never fails
		}
		if v.placed != nil {
			v.placed.free()
		}
	}
	v.bound, v.placed, v.scalar, v.data = nil, nil, nil, nil
	return nil
}

// maxElements bounds the size of a shape, above the memory of any machine.
const maxElements = 1 << 42

// wrap returns a Value of type t that shares data. Go lacks the 16-bit floating-point types: the
// binding gets their bytes.
func wrap[T Element](t onnx.Type, data []T, shape []int) (*Value, error) {
	if n := tensor.Size(shape); n != len(data) {
		return nil, fmt.Errorf("making a tensor: shape %v needs %d elements, not %d", shape, n, len(data))
	}
	v := &Value{typ: t, shape: slices.Clone(shape), data: data, busy: new(atomic.Int32)}
	if len(shape) == 0 {
		if t.Half() {
			return nil, fmt.Errorf("making a tensor: a scalar of %v is not supported", t)
		}
		v.scalar = scalar[T]{data: data}
		return v, nil
	}
	dims := make(binding.Shape, len(shape))
	for i, d := range shape {
		dims[i] = int64(d)
	}
	var err error
	if t.Half() {
		v.bound, err = binding.NewCustomDataTensor(dims, bytesOf(data), binding.TensorElementDataType(t))
	} else {
		v.bound, err = binding.NewTensor(dims, data)
	}
	if err != nil {
		return nil, fmt.Errorf("making a tensor of shape %v: %w", shape, oneLine(err))
	}
	return v, nil
}

func bytesOf[T Element](data []T) []byte {
	if len(data) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), len(data)*int(unsafe.Sizeof(data[0])))
}
