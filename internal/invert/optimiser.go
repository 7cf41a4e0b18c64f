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

// This file adds the update of the images to a stepBuilder, which builds the ONNX graph of one step
// of a search for images by gradient descent. Its state, such as Adam's averages, is tensors that a
// step passes to the next (setNext). Its schedule is scalars that change from step to step
// (scheduleAt).

// update returns the images x after a step, before they are projected onto the ball of allowed
// images (o.Ball). direction is the gradient of each sample divided by its norm, or 0 where the
// norm is 0.
func (s *stepBuilder) update(direction onnx.Value, o Options) onnx.Value {
	b := s.b
	if o.Optimiser == Adam {
		return s.updateAdam(direction)
	}
	if o.Ball.Norm == Linf {
		direction = b.Sign(direction)
	}
	return b.Sub(s.x, b.Mul(direction, s.addSchedule("length")))
}

// updateAdam is update with Adam (Kingma and Ba 2015, algorithm 1) on the gradients g.
func (s *stepBuilder) updateAdam(g onnx.Value) onnx.Value {
	b := s.b
	m, v := s.addState("mean", s.image...), s.addState("variance", s.image...)
	movingAverage := func(old, value onnx.Value, beta float32) onnx.Value {
		return b.Add(b.Mul(old, b.Scalar(beta)), b.Mul(value, b.Scalar(1-beta)))
	}
	m, v = movingAverage(m, g, adamBeta1), movingAverage(v, b.Mul(g, g), adamBeta2)
	s.setNext("mean", m)
	s.setNext("variance", v)
	root := b.Add(b.Sqrt(b.Mul(v, s.addSchedule("correction"))), b.Scalar(adamEpsilon))
	return b.Sub(s.x, b.Mul(b.Div(m, root), s.addSchedule("length")))
}

// scheduleAt returns the value of a scheduled scalar in a step, counted from 0: "length", the step
// length (with Adam, corrected for the bias of the mean), or "correction", the factor by which Adam
// corrects the bias of the variance.
func (o Options) scheduleAt(name string, step int) float32 {
	t := float64(step + 1)
	switch {
	case name == "correction":
		return float32(1 / (1 - math.Pow(adamBeta2, t)))
	case o.Optimiser == Adam:
		return float32(o.StepSize / (1 - math.Pow(adamBeta1, t)))
	}
	return float32(o.StepSize)
}
