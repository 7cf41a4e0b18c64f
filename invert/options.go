package invert

import (
	"fmt"
	"time"
)

// An Optimiser says how a gradient becomes a step.
type Optimiser string

const (
	// Paper moves each sample by StepSize, a length in the image's l2 norm, against its gradient (Nanda et al. 2022,
	// equation 5). In an linf ball the step is StepSize times the sign of the gradient.
	Paper Optimiser = "paper"
	// Adam is Kingma and Ba's, on the gradient divided by its norm, with StepSize the change of one pixel in one step.
	Adam Optimiser = "adam"
)

// What the optimisers do where nothing is said.
const (
	paperSteps    = 1000
	paperStepSize = 0.5
	adamSteps     = 150
	adamStepSize  = 0.01
)

// A Norm measures the distance between images.
type Norm string

const (
	L2   Norm = "l2"
	Linf Norm = "linf"
)

// A Ball bounds how far an image may go from the one that the search is about. The zero Ball is no bound.
type Ball struct {
	Norm   Norm
	Radius float64 // in units of an image whose values go from 0 to 1
}

// Options say how to search. The zero Options are the paper's.
type Options struct {
	Optimiser Optimiser // Paper
	Steps     int       // 1,000, or 150 with Adam
	StepSize  float64   // 0.5, or 0.01 with Adam
	Ball      Ball
	// Batch is the number of samples of one run of the engine, of which as many go side by side as there are cores; 0: as many as keep its activations within 512
	// MiB, at most 32. Samples do not depend on each other, but the engine may round differently for another size.
	Batch int
	// SaveEvery is how often a search with a checkpoint saves it; 0: every 15 seconds.
	SaveEvery time.Duration
}

// WithDefaults fills in what is left out, and complains about what makes no sense.
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
		return o, fmt.Errorf("optimiser %q: it is %s or %s", o.Optimiser, Paper, Adam)
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
		return o, fmt.Errorf("%d steps: take at least one", o.Steps)
	case !(o.StepSize > 0) || o.StepSize > maxStep:
		return o, fmt.Errorf("step size %v: it is above 0 and at most %v", o.StepSize, float64(maxStep))
	case o.Batch < 0:
		return o, fmt.Errorf("batch %d: it is a number of samples, or 0", o.Batch)
	}
	return o, o.Ball.check()
}

const maxStep = 1e6

func (b Ball) check() error {
	switch {
	case b == Ball{}:
	case b.Norm != L2 && b.Norm != Linf:
		return fmt.Errorf("ball in norm %q: it is %s or %s", b.Norm, L2, Linf)
	case !(b.Radius > 0) || b.Radius > maxStep:
		return fmt.Errorf("ball of radius %v: it is above 0 and at most %v", b.Radius, float64(maxStep))
	}
	return nil
}
