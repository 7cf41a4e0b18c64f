package autoattack

import (
	"math"

	"github.com/noether-ml/noether/internal/ball"
)

const (
	momentum      = 0.75 // weight of the step against that of the step before
	rho           = 0.75 // the step is halved if at most this part of the steps has increased the loss
	firstPeriod   = 22   // steps before the step length is checked first: p_1 = 0.22 of all steps
	periodLess    = 3    // by which each period is shorter than the one before
	minimalPeriod = 6
)

// apgd ascends a loss by projected gradient ascent with momentum from a random point at the
// boundary of the ball (algorithm 1 of the paper). A step is at first as long as the ball is wide.
// At the end of a period it is halved, and the search continues at the best image so far, if few
// steps of the period have increased the loss, or if the best loss and the step are those of the
// period before.
func (s *search) apgd(loss func(z []float32) float64, target int) error {
	x := s.start()
	z, g, err := s.gradient(x, target)
	if err != nil {
		return err
	}
	if zero(g) { // no step would leave x
		s.result.Flat = true
		return nil
	}
	before := x
	best, bestGradient, bestLoss := x, g, loss(z)
	length := 2 * s.Ball.Radius
	period, sinceCheck, increases := firstPeriod, 0, 0
	lastLoss := 0.0 // in the first step: of the authors' code
	checkedLoss, halved := bestLoss, true
	for i := range steps {
		share := float32(momentum)
		if i == 0 {
			share = 1
		}
		next := s.step(x, before, g, length, share)
		before, x = x, next
		if z, g, err = s.gradient(x, target); err != nil {
			return err
		}
		now := loss(z)
		if now > lastLoss {
			increases++
		}
		lastLoss = now
		if now > bestLoss {
			best, bestGradient, bestLoss = x, g, now
		}
		if sinceCheck++; sinceCheck < period {
			continue
		}
		halved = float64(increases) <= rho*float64(period) || !halved && checkedLoss >= bestLoss
		checkedLoss = bestLoss
		if halved {
			length /= 2
			x, g = best, bestGradient
		}
		period, sinceCheck, increases = max(period-periodLess, minimalPeriod), 0, 0
	}
	return nil
}

// start draws a direction, uniform in a cube (linf) or on a sphere (l2), and returns the point of
// the ball's boundary in this direction, clipped to [0, 1].
func (s *search) start() []float32 {
	x := make([]float32, len(s.Image))
	for i := range x {
		if s.Ball.Norm == ball.Linf {
			x[i] = 2*s.draw.Float32() - 1
		} else {
			x[i] = float32(s.draw.NormFloat64())
		}
	}
	scale := float32(s.Ball.Radius / (s.norm(x, make([]float32, len(x))) + tiny))
	for i, v := range s.Image {
		x[i] = clip(v + float32(scale*x[i]))
	}
	return x
}

// step returns the image after a step along the gradient g and, weighted by 1 - share, the step
// from before to x.
func (s *search) step(x, before, g []float32, length float64, share float32) []float32 {
	next := make([]float32, len(x))
	size := norm2(g)
	for i, v := range g {
		unit := float64(sign(v))
		if s.Ball.Norm == ball.L2 && size > 0 {
			unit = float64(v) / size
		}
		next[i] = x[i] + float32(length*unit)
	}
	s.project(next)
	for i, v := range x {
		next[i] = v + float32((next[i]-v)*share) + float32((v-before[i])*(1-share))
	}
	s.project(next)
	return next
}

// project moves x into the ball and clips it to [0, 1].
func (s *search) project(x []float32) {
	if s.Ball.Norm == ball.Linf {
		radius := float32(s.Ball.Radius)
		for i, v := range s.Image {
			x[i] = clip(min(max(x[i], v-radius), v+radius))
		}
		return
	}
	length := s.norm(x, s.Image)
	scale := float32(math.Min(s.Ball.Radius, length) / (length + tiny))
	for i, v := range s.Image {
		x[i] = clip(v + float32((x[i]-v)*scale))
	}
}

func norm2(v []float32) float64 {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

func sign(v float32) float32 {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}
