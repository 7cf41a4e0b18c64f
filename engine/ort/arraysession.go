package ort

import (
	"context"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/onnx"
)

type arraySession struct{ *Session }

// An array without data gets memory on the device only.
func (s arraySession) Bind(a *engine.Array) (err error) {
	var v *Value
	switch data := a.Data.(type) {
	case nil:
		v, err = s.NewDeviceValue(a.Shape...)
	case []float32:
		v, err = wrap(onnx.Float, data, a.Shape)
	case []float64:
		v, err = wrap(onnx.Double, data, a.Shape)
	case []int8:
		v, err = wrap(onnx.Int8, data, a.Shape)
	case []int32:
		v, err = wrap(onnx.Int32, data, a.Shape)
	case []int64:
		v, err = wrap(onnx.Int64, data, a.Shape)
	case []uint8:
		v, err = wrap(onnx.Uint8, data, a.Shape)
	case []bool:
		v, err = wrap(onnx.Bool, data, a.Shape)
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
