package ort

import (
	"fmt"

	binding "github.com/yalue/onnxruntime_go"
)

// A rank0 carries the one element of a scalar to the engine and back. The binding gives a scalar memory of its own, which
// cannot be written afterwards, so each run makes one from the element as it is then.
type rank0 interface {
	// enter returns what the engine reads or writes.
	enter() (binding.Value, error)
	// leave takes the element back.
	leave()
	release()
}

type scalar[T Element] struct {
	data  []T // one element
	bound *binding.Scalar[T]
}

func (s *scalar[T]) enter() (binding.Value, error) {
	s.release()
	bound, err := binding.NewScalar(s.data[0])
	if err != nil {
		return nil, fmt.Errorf("making a scalar: %w", oneLine(err))
	}
	s.bound = bound
	return bound, nil
}

func (s *scalar[T]) leave() { s.data[0] = s.bound.GetData() }

func (s *scalar[T]) release() {
	if s.bound != nil {
		_ = s.bound.Destroy() // never fails
		s.bound = nil
	}
}
