package ort

import (
	"fmt"

	binding "github.com/yalue/onnxruntime_go"
)

// A rank0 carries the one element of a scalar to the engine and back. The binding gives a scalar
// memory of its own, which cannot be written afterwards, so each run makes one from the element as
// it is then.
type rank0 interface {
	enter() (binding.Value, error)
	leave(binding.Value)
}

type scalar[T Element] struct {
	data []T // one element
}

// enter returns what the engine reads or writes in one run.
func (s scalar[T]) enter() (binding.Value, error) {
	v, err := binding.NewScalar(s.data[0])
	if err != nil {
		return nil, fmt.Errorf("making a scalar: %w", oneLine(err))
	}
	return v, nil
}

// leave takes the element back from what enter returned.
func (s scalar[T]) leave(v binding.Value) { s.data[0] = v.(*binding.Scalar[T]).GetData() }
