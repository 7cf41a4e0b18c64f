package invert

import (
	"math"

	"github.com/noether-ml/noether/onnx"
)

const (
	adamBeta1   = 0.9
	adamBeta2   = 0.999
	adamEpsilon = 1e-8
)

// update returns x after a step against a direction, which is the gradient with norm 1 or 0.
func (s *step) update(direction onnx.Value, o Options) onnx.Value {
	b := s.b
	if o.Optimiser == Adam {
		return s.updateAdam(direction)
	}
	if o.Ball.Norm == Linf {
		direction = b.Sign(direction)
	}
	return b.Sub(s.x, b.Mul(direction, s.addRate("length")))
}

// updateAdam is update for Adam (Kingma and Ba 2015, algorithm 1).
func (s *step) updateAdam(g onnx.Value) onnx.Value {
	b := s.b
	m, v := s.addState("mean", s.image...), s.addState("variance", s.image...)
	average := func(old, now onnx.Value, beta float32) onnx.Value {
		return b.Add(b.Mul(old, b.Scalar(beta)), b.Mul(now, b.Scalar(1-beta)))
	}
	m, v = average(m, g, adamBeta1), average(v, b.Mul(g, g), adamBeta2)
	s.setNext("mean", m)
	s.setNext("variance", v)
	root := b.Add(b.Sqrt(b.Mul(v, s.addRate("correction"))), b.Scalar(adamEpsilon))
	return b.Sub(s.x, b.Mul(b.Div(m, root), s.addRate("length")))
}

// rateAt returns the value of a rate in a step, counted from 0.
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
