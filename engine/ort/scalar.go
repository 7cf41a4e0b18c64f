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

// scalar implements scalarCopy for elements of type T.
type scalar[T Element] struct {
	data []T // one element
}

// enter returns the engine's value for one run.
func (s scalar[T]) enter() (binding.Value, error) {
	v, err := binding.NewScalar(s.data[0])
	if err != nil {
		return nil, fmt.Errorf("making a scalar: %w", oneLine(err))
	}
	return v, nil
}

// leave copies the element back from the value that enter returned.
func (s scalar[T]) leave(v binding.Value) { s.data[0] = v.(*binding.Scalar[T]).GetData() }
