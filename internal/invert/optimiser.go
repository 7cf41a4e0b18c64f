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

// The update of the images. Its state, such as Adam's averages, passes from step to step (setNext);
// its schedule is scalars that change (scheduleAt).

// update returns the images after a step, before projection onto the ball. direction is each
// sample's gradient divided by its norm; 0 where the norm is 0.
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

// scheduleAt returns a scheduled scalar in a step from 0: "length", with Adam corrected for the
// bias of the mean, or "correction", Adam's factor for the bias of the variance.
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
