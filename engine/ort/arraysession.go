package ort

import (
	"context"

	"github.com/noether-ml/noether/engine"
)

type arraySession struct{ *Session }

// An array without data gets memory on the device only.
func (s arraySession) Bind(a *engine.Array) (err error) {
	var v *Value
	if a.Data == nil {
		v, err = s.NewDeviceValue(a.Shape...)
	}
	for _, e := range elements {
		if v == nil && err == nil {
			v, err = e.wrap(e.typ, a.Data, a.Shape)
		}
	}
	if err == nil {
		a.Bound = v
	}
	return err
}

// Place gives bound arrays memory on the session's device: see Session.Place.
func (s arraySession) Place(arrays ...*engine.Array) error {
	return s.Session.Place(valuesOf(arrays)...)
}

// Run implements engine.Session.
func (s arraySession) Run(ctx context.Context, b engine.Batch) error {
	outputs := valuesOf(b.Outputs)
	err := s.Session.Run(ctx, valuesOf(b.Inputs), outputs)
	for i, a := range b.Outputs {
		if v := outputs[i]; a.Bound == nil && v != nil {
			a.Shape, a.Data, a.Bound = v.Shape(), v.Elements(), v
		}
	}
	return err
}

func valuesOf(arrays []*engine.Array) []*Value {
	values := make([]*Value, len(arrays))
	for i, a := range arrays {
		values[i], _ = a.Bound.(*Value)
	}
	return values
}
