package ort

import (
	"fmt"
	"slices"
	"unsafe"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Element is what a Value is made of in Go. Float16 and bfloat16 numbers are uint16 with their
// bits.
type Element interface {
	float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | bool
}

// A Value is a tensor that a session reads or writes in place: a type, a shape, and elements in
// Go's memory, the last axis varying fastest. Close it when it is no longer needed.
type Value struct {
	typ    onnx.Type
	shape  []int
	data   any // []T
	bound  binding.Value
	scalar rank0 // instead of bound, for a tensor without axes
}

// NewValue returns a Value of zeros.
func (r *Runtime) NewValue(t onnx.Type, shape ...int) (*Value, error) {
	switch t {
	case onnx.Float:
		return newValue[float32](t, shape)
	case onnx.Double:
		return newValue[float64](t, shape)
	case onnx.Int8:
		return newValue[int8](t, shape)
	case onnx.Int16:
		return newValue[int16](t, shape)
	case onnx.Int32:
		return newValue[int32](t, shape)
	case onnx.Int64:
		return newValue[int64](t, shape)
	case onnx.Uint8:
		return newValue[uint8](t, shape)
	case onnx.Uint16, onnx.Float16, onnx.BFloat16:
		return newValue[uint16](t, shape)
	case onnx.Uint32:
		return newValue[uint32](t, shape)
	case onnx.Uint64:
		return newValue[uint64](t, shape)
	case onnx.Bool:
		return newValue[bool](t, shape)
	}
	return nil, fmt.Errorf("making a tensor: element type %v is not supported", t)
}

// Wrap returns a Value over data, which it does not copy: the engine reads and writes data itself.
// The length of data must be the product of shape.
func Wrap[T Element](r *Runtime, data []T, shape ...int) (*Value, error) {
	return wrap(typeOf[T](), data, shape)
}

// Data returns the elements of v in place, until Close. It panics if v is of another type.
func Data[T Element](v *Value) []T { return v.data.([]T) }

// Type returns the type of the elements.
func (v *Value) Type() onnx.Type { return v.typ }

// Shape returns the shape: empty for a scalar. It must not be changed.
func (v *Value) Shape() []int { return v.shape }

// Elements returns the elements in place, a slice of what Data's type parameter would be.
func (v *Value) Elements() any { return v.data }

// Tensor returns a Value of float32 as a tensor in place, until Close. It panics if v is of another
// type.
func (v *Value) Tensor() tensor.Tensor { return tensor.Tensor{Shape: v.shape, Data: Data[float32](v)} }

// First returns the first n slices along the first axis as a Value of their own, which shares the
// elements of v.
func (v *Value) First(n int) (*Value, error) {
	if len(v.shape) == 0 || n < 0 || n > v.shape[0] {
		return nil, fmt.Errorf("taking %d slices of a tensor of shape %v: there are not as many", n, v.shape)
	}
	shape := slices.Clone(v.shape)
	shape[0] = n
	switch data := v.data.(type) {
	case []float32:
		return first(v.typ, data, shape)
	case []float64:
		return first(v.typ, data, shape)
	case []int8:
		return first(v.typ, data, shape)
	case []int16:
		return first(v.typ, data, shape)
	case []int32:
		return first(v.typ, data, shape)
	case []int64:
		return first(v.typ, data, shape)
	case []uint8:
		return first(v.typ, data, shape)
	case []uint16:
		return first(v.typ, data, shape)
	case []uint32:
		return first(v.typ, data, shape)
	case []uint64:
		return first(v.typ, data, shape)
	}
	return first(v.typ, v.data.([]bool), shape)
}

func first[T Element](t onnx.Type, data []T, shape []int) (*Value, error) {
	return wrap(t, data[:tensor.Size(shape)], shape)
}

// Close frees what the engine holds for v. The elements, being Go's, stay with whoever has them.
func (v *Value) Close() error {
	if v == nil {
		return nil
	}
	if v.bound != nil {
		_ = v.bound.Destroy() // never fails
	}
	v.bound, v.scalar, v.data = nil, nil, nil
	return nil
}

// maxElements bounds what a shape may claim: no machine has as much memory.
const maxElements = 1 << 42

func newValue[T Element](t onnx.Type, shape []int) (*Value, error) {
	n := 1
	for _, d := range shape {
		if d < 0 || d > 0 && n > maxElements/d {
			return nil, fmt.Errorf("making a tensor: shape %v is negative or too large", shape)
		}
		n *= d
	}
	return wrap(t, make([]T, n), shape)
}

func wrap[T Element](t onnx.Type, data []T, shape []int) (*Value, error) {
	if n := tensor.Size(shape); n != len(data) {
		return nil, fmt.Errorf("making a tensor: shape %v wants %d elements, not %d", shape, n, len(data))
	}
	v := &Value{typ: t, shape: slices.Clone(shape), data: data}
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

// typeOf returns the type of a tensor of T; uint16 is the integer.
func typeOf[T Element]() onnx.Type {
	var zero T
	switch any(zero).(type) {
	case float32:
		return onnx.Float
	case float64:
		return onnx.Double
	case int8:
		return onnx.Int8
	case int16:
		return onnx.Int16
	case int32:
		return onnx.Int32
	case int64:
		return onnx.Int64
	case uint8:
		return onnx.Uint8
	case uint16:
		return onnx.Uint16
	case uint32:
		return onnx.Uint32
	case uint64:
		return onnx.Uint64
	}
	return onnx.Bool
}
