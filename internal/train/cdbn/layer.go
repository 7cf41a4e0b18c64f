package cdbn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
)

// Settings are the settings of training a layer.
type Settings struct {
	Units  int // number of groups, K: the hidden units of a group share a filter
	Filter int // side of a filter in pixels; 0: 10
	// Side of a block, a square of units of a group, at most one of which is on; 0: 2.
	Block    int
	Binary   bool    // visible units are binary, images their probabilities; else Gaussian
	Target   float64 // target mean activation of hidden units; 0: 0.005
	Weight   float64 // of the sparsity penalty; 0: 5
	Decay    float64 // weight decay of the filters
	Rate     float64 // learning rate; 0: 0.1
	Momentum float64 // 0: 0.9; at most 0.5 in the first tenth of the steps
	Steps    int     // 0: 1000
	Batch    int     // images in a step; 0: 4
	Seed     uint64
	Engine   ort.Options
	// AfterStep is called after each step. An error ends the training. Optional.
	AfterStep func(Point) error
}

// A Point holds the measurements of a step before its update.
type Point struct {
	Step int // from 1
	// Error is the mean squared difference between visible units and their reconstruction.
	Error    float64
	Activity float64 // mean of P(h|v) over the hidden units h, given the visible units v
}

func (s Settings) complete() Settings {
	s.Target, s.Weight = cmp.Or(s.Target, 0.005), cmp.Or(s.Weight, 5)
	s.Rate, s.Momentum = cmp.Or(s.Rate, 0.1), cmp.Or(s.Momentum, 0.9)
	s.Filter, s.Block = cmp.Or(s.Filter, 10), cmp.Or(s.Block, 2)
	s.Steps, s.Batch = cmp.Or(s.Steps, 1000), cmp.Or(s.Batch, 4)
	return s
}

func (s Settings) check(x tensor.Tensor) error {
	switch {
	case x.Rank() != 4 || x.Len() == 0:
		return fmt.Errorf("images have the shape %v: it must be n x channels x height x width", x.Shape)
	case s.Units < 1 || s.Filter < 1 || s.Block < 1 || s.Steps < 1 || s.Batch < 1:
		return fmt.Errorf("%d units, filters of %d, blocks of %d, %d steps, batches of %d: each must be at least 1", s.Units, s.Filter, s.Block, s.Steps, s.Batch)
	case !(s.Rate > 0) || !(s.Momentum >= 0 && s.Momentum < 1) || !(s.Decay >= 0) || !(s.Weight >= 0) || !(s.Target > 0 && s.Target < 1):
		return fmt.Errorf("rate %g, momentum %g, decay %g, sparsity target %g, sparsity weight %g: the rate must be above 0, momentum and target between 0 and 1, the others at least 0",
			s.Rate, s.Momentum, s.Decay, s.Target, s.Weight)
	case s.Target*float64(s.Block*s.Block) >= 1:
		return fmt.Errorf("sparsity target is %g: at most one of the %d units of a block is on", s.Target, s.Block*s.Block)
	}
	for axis, side := range x.Shape[2:] {
		if positions := side - s.Filter + 1; positions < s.Block || positions%s.Block != 0 {
			return fmt.Errorf("images are %v: along axis %d filters of %d have %d positions, not a multiple of the block size %d", x.Shape[2:], axis+2, s.Filter, positions, s.Block)
		}
	}
	for i, v := range x.Data {
		if v != v || math.IsInf(float64(v), 0) || s.Binary && (v < 0 || v > 1) {
			return fmt.Errorf("image %d has the value %g", i/(x.Len()/x.Shape[0]), v)
		}
	}
	return nil
}

// A Layer is a trained layer of K groups on images with m channels. Filters have f x f pixels.
type Layer struct {
	W      tensor.Tensor // filters, K x m x f x f
	B      tensor.Tensor // biases of the groups, K
	C      tensor.Tensor // biases of the visible channels, m
	Scale  float64       // factor that gives training images the root mean square 1; 1 if Binary
	Block  int           // side of a block
	Binary bool          // as in Settings
	Curve  []Point       // of each step
}

// Train trains a layer on images, n x channels x height x width.
func Train(ctx context.Context, rt *ort.Runtime, images tensor.Tensor, s Settings) (*Layer, error) {
	s = s.complete()
	if err := s.check(images); err != nil {
		return nil, fmt.Errorf("training a convolutional Boltzmann machine: %w", err)
	}
	s.Batch = min(s.Batch, images.Shape[0])
	l := &Layer{Scale: 1, Block: s.Block, Binary: s.Binary}
	if !s.Binary {
		deviation := rootMeanSquare(images.Data)
		if deviation == 0 {
			return nil, errors.New("training a convolutional Boltzmann machine: all images are 0")
		}
		l.Scale = 1 / deviation
	}
	e, err := newStepper(rt, s, images.Shape[1:])
	if err != nil {
		return nil, err
	}
	defer e.close()
	if err := e.train(ctx, images, l); err != nil {
		return nil, fmt.Errorf("training a convolutional Boltzmann machine: %w", err)
	}
	return l, nil
}

func rootMeanSquare(x []float32) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum / float64(len(x)))
}

func (e *stepper) train(ctx context.Context, images tensor.Tensor, l *Layer) error {
	s := e.Settings
	size := tensor.Size(images.Shape[1:])
	e.initialise(images)
	for step := range s.Steps {
		draw := seed.Rand(s.Seed, "cdbn: step", step)
		v := ort.Data[float32](e.in["v"])
		for i := range s.Batch {
			at := draw.IntN(images.Shape[0])
			for j, p := range images.Data[at*size : (at+1)*size] {
				v[i*size+j] = p * float32(l.Scale)
			}
		}
		u := ort.Data[float32](e.in["u"]) // random numbers from which hidden units are drawn
		for i := range u {
			u[i] = draw.Float32()
		}
		momentum := s.Momentum
		if step < s.Steps/10 {
			momentum = min(0.5, momentum)
		}
		ort.Data[float32](e.in["momentum"])[0] = float32(momentum)
		p, err := e.step(ctx)
		if err != nil {
			return err
		}
		p.Step = step + 1
		if math.IsNaN(p.Error) || math.IsInf(p.Error, 0) {
			return fmt.Errorf("step %d: the reconstruction error is %g: lower the rate", p.Step, p.Error)
		}
		l.Curve = append(l.Curve, p)
		if s.AfterStep != nil {
			if err := s.AfterStep(p); err != nil {
				return err
			}
		}
	}
	l.W, l.B, l.C = e.value("W"), e.value("b"), e.value("c")
	return nil
}
