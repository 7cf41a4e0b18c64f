package invert

import (
	"math"

	"github.com/noether-ml/noether/onnx"
)

const (
	adamBeta1 = 0.9
	adamBeta2 = 0.999
	adamTiny  = 1e-8
)

// move takes a step from x against a direction, which is the gradient with norm 1 or 0.
func (s *step) move(direction onnx.Value, o Options) onnx.Value {
	b := s.b
	if o.Optimiser == Adam {
		return s.moveAdam(direction)
	}
	if o.Ball.Norm == Linf {
		direction = b.Sign(direction)
	}
	return b.Sub(s.x, b.Mul(direction, s.rate("length")))
}

// moveAdam is Adam (Kingma and Ba 2015, algorithm 1).
func (s *step) moveAdam(g onnx.Value) onnx.Value {
	b := s.b
	m, v := s.remember("mean", s.image...), s.remember("variance", s.image...)
	average := func(old, now onnx.Value, beta float32) onnx.Value {
		return b.Add(b.Mul(old, b.Scalar(beta)), b.Mul(now, b.Scalar(1-beta)))
	}
	m, v = average(m, g, adamBeta1), average(v, b.Mul(g, g), adamBeta2)
	s.next("mean", m)
	s.next("variance", v)
	root := b.Add(b.Sqrt(b.Mul(v, s.rate("correction"))), b.Scalar(adamTiny))
	return b.Sub(s.x, b.Mul(b.Div(m, root), s.rate("length")))
}

// rateAt is the value of a rate in a step, counted from 0.
func (o Options) rateAt(name string, step int) float32 {
	t := float64(step + 1)
	switch {
	case name == "correction":
		return float32(1 / (1 - math.Pow(adamBeta2, t)))
	case o.Optimiser == Adam:
		return float32(o.StepSize / (1 - math.Pow(adamBeta1, t)))
	}
	return float32(o.StepSize)
}
