package ort

import (
	"fmt"

	binding "github.com/yalue/onnxruntime_go"
)

// A scalarCopy copies the element of a scalar to the engine and back. The package onnxruntime_go,
// here named binding, copies a scalar into its own memory, which cannot be written later, so each
// run creates a new one.
type scalarCopy interface {
	enter() (binding.Value, error)
	leave(binding.Value)
}

type scalar[T Element] struct {
	data []T // one element
}

func (s scalar[T]) enter() (binding.Value, error) {
	v, err := binding.NewScalar(s.data[0])
	if err != nil {
		return nil, fmt.Errorf("making a scalar: %w", oneLine(err))
	}
	return v, nil
}

func (s scalar[T]) leave(v binding.Value) { s.data[0] = v.(*binding.Scalar[T]).GetData() }
