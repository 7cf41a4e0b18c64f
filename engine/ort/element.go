package ort

import (
	"fmt"
	"sync/atomic"

	binding "github.com/yalue/onnxruntime_go"

	"github.com/noether-ml/noether/onnx"
)

// Element is the Go type of the elements of a Value. Float16 and bfloat16 numbers are uint16 that
// hold their bits.
type Element interface {
	float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | bool
}

type kind interface {
	newValue(t onnx.Type, shape []int) (*Value, error)
	// wrap returns a Value of type t that shares data, or nil if the elements have another Go type.
	wrap(t onnx.Type, data any, shape []int) (*Value, error)
	// adopt returns a Value of type t that uses the memory of a tensor that the engine allocated,
	// or nil if the elements of the tensor have another Go type.
	adopt(t onnx.Type, b binding.Value) *Value
}

type elementKind[T Element] struct{}

var elements = []struct {
	typ onnx.Type
	kind
}{
	{onnx.Float, elementKind[float32]{}},
	{onnx.Double, elementKind[float64]{}},
	{onnx.Int8, elementKind[int8]{}},
	{onnx.Int16, elementKind[int16]{}},
	{onnx.Int32, elementKind[int32]{}},
	{onnx.Int64, elementKind[int64]{}},
	{onnx.Uint8, elementKind[uint8]{}},
	{onnx.Uint16, elementKind[uint16]{}},
	{onnx.Float16, elementKind[uint16]{}}, // after Uint16: typeOf returns the first of a kind
	{onnx.BFloat16, elementKind[uint16]{}},
	{onnx.Uint32, elementKind[uint32]{}},
	{onnx.Uint64, elementKind[uint64]{}},
	{onnx.Bool, elementKind[bool]{}},
}

func typeOf(k kind) onnx.Type {
	for _, e := range elements {
		if e.kind == k {
			return e.typ
		}
	}
	panic(fmt.Sprintf("ort: no ONNX type for %T", k)) // elements has every Element
}

// adopt is kind.adopt for the kind of b's type. If the tensor has a type without a kind, adopt
// frees it and returns an error.
func adopt(b binding.Value) (*Value, error) {
	for _, e := range elements {
		if v := e.adopt(e.typ, b); v != nil {
			return v, nil
		}
	}
	err := fmt.Errorf("a run cannot create a tensor of type %v; pass a Value for this output", onnx.Type(b.DataType()))
	_ = b.Destroy()
	return nil, err
}

func (elementKind[T]) newValue(t onnx.Type, shape []int) (*Value, error) {
	n := 1
	for _, d := range shape {
		if d < 0 || d > 0 && n > maxElements/d {
			return nil, fmt.Errorf("making a tensor: shape %v is negative or too large", shape)
		}
		n *= d
	}
	return wrap(t, make([]T, n), shape)
}

func (elementKind[T]) wrap(t onnx.Type, data any, shape []int) (*Value, error) {
	if of, ok := data.([]T); ok {
		return wrap(t, of, shape)
	}
	return nil, nil
}

func (elementKind[T]) adopt(t onnx.Type, b binding.Value) *Value {
	bound, ok := b.(*binding.Tensor[T])
	if !ok {
		return nil
	}
	shape := make([]int, len(bound.GetShape()))
	for i, d := range bound.GetShape() {
		shape[i] = int(d)
	}
	return &Value{typ: t, shape: shape, data: bound.GetData(), bound: bound, busy: new(atomic.Int32)}
}
