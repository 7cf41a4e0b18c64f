package invert

import (
	"fmt"
	"time"
)

// An Optimiser determines the step for a gradient.
type Optimiser string

const (
	// Paper moves each sample against its gradient by StepSize, a length in the l2 norm of images
	// (Nanda et al. 2022, equation 5). In an linf ball the step is StepSize times the sign of the
	// gradient.
	Paper Optimiser = "paper"
	// Adam is the optimiser of Kingma and Ba on the normalised gradient. StepSize is the largest
	// change of a pixel in a step.
	Adam Optimiser = "adam"
)

// Default steps and step sizes of the optimisers.
const (
	paperSteps    = 1000
	paperStepSize = 0.5
	adamSteps     = 150
	adamStepSize  = 0.01
)

// A Norm is a norm of the distance between images.
type Norm string

const (
	L2   Norm = "l2"
	Linf Norm = "linf"
)

// A Ball bounds the distance of an image from x. The zero Ball is no bound.
type Ball struct {
	Norm   Norm
	Radius float64 // for images with values from 0 to 1
}

// Options are the options of a search. The zero Options are the paper's.
type Options struct {
	Optimiser Optimiser // "": Paper
	Steps     int       // 0: 1,000, or 150 with Adam
	StepSize  float64   // 0: 0.5, or 0.01 with Adam
	Ball      Ball
	// Batch is the number of samples in one run of the engine. There are as many concurrent runs as
	// cores. 0: as many samples as keep the activations within 512 MiB, at most 32. Samples do not
	// depend on each other, but rounding may differ with the batch size.
	Batch int
	// SaveEvery is the interval between checkpoints; 0: 15 seconds.
	SaveEvery time.Duration
}

// WithDefaults returns the options with defaults filled in, or an error if they are not valid.
func (o Options) WithDefaults() (Options, error) {
	if o.Optimiser == "" {
		o.Optimiser = Paper
	}
	steps, size := paperSteps, paperStepSize
	switch o.Optimiser {
	case Paper:
	case Adam:
		steps, size = adamSteps, adamStepSize
	default:
		return o, fmt.Errorf("optimiser %q: it must be %s or %s", o.Optimiser, Paper, Adam)
	}
	if o.Steps == 0 {
		o.Steps = steps
	}
	if o.StepSize == 0 {
		o.StepSize = size
	}
	if o.SaveEvery == 0 {
		o.SaveEvery = 15 * time.Second
	}
	switch {
	case o.Steps < 1:
		return o, fmt.Errorf("%d steps: at least one is needed", o.Steps)
	case !(o.StepSize > 0) || o.StepSize > maxStep:
		return o, fmt.Errorf("step size %v: it must be above 0 and at most %v", o.StepSize, float64(maxStep))
	case o.Batch < 0:
		return o, fmt.Errorf("batch %d: it must be a number of samples, or 0", o.Batch)
	}
	return o, o.Ball.check()
}

const maxStep = 1e6

func (b Ball) check() error {
	switch {
	case b == Ball{}:
	case b.Norm != L2 && b.Norm != Linf:
		return fmt.Errorf("ball in norm %q: it must be %s or %s", b.Norm, L2, Linf)
	case !(b.Radius > 0) || b.Radius > maxStep:
		return fmt.Errorf("ball of radius %v: it must be above 0 and at most %v", b.Radius, float64(maxStep))
	}
	return nil
}
