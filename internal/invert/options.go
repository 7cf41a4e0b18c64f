package invert

import (
	"cmp"
	"fmt"
	"time"

	"github.com/noether-ml/noether/internal/ball"
)

// An Optimiser computes a step from a gradient.
type Optimiser string

const (
	// Paper moves each sample against its gradient by StepSize, a length in the l2 norm of images
	// (Nanda et al. 2022, "Measuring Representational Robustness of Neural Networks Through Shared
	// Invariances", equation 5). If Ball.Norm is Linf the step is StepSize times the sign of the
	// gradient.
	Paper Optimiser = "paper"
	// Adam is the optimiser of Kingma and Ba on the gradient of each sample divided by its l2 norm.
	// StepSize is its learning rate, about the largest change of a pixel in a step.
	Adam Optimiser = "adam"
)

const (
	paperSteps    = 1000
	paperStepSize = 0.5
	adamSteps     = 150
	adamStepSize  = 0.01
)

// A Norm is a norm of the difference between two images.
type Norm = ball.Norm

const (
	L2   = ball.L2   // Euclidean norm
	Linf = ball.Linf // largest absolute value
)

// A Ball bounds the distance of the image that is searched for from the given image x. The zero
// Ball sets no bound.
type Ball = ball.Ball

// Options are the options of a search. The zero Options are those of Nanda et al. (2022).
type Options struct {
	Optimiser Optimiser // "": Paper
	Steps     int       // 0: 1,000, or 150 with Adam
	StepSize  float64   // 0: 0.5, or 0.01 with Adam
	Ball      Ball      // to which the image stays confined; zero: no bound
	// Batch is the largest number of samples that are computed at once, over all concurrent runs;
	// 0: up to 32, within about 512 MiB of activations and gradients. Rounding may differ with it.
	Batch int
	// SaveEvery is the interval between saved checkpoints of an unfinished search; 0: 15 seconds.
	SaveEvery time.Duration
	// Graphs runs what surrounds a model that is no ONNX graph; it may be nil if there is none.
	Graphs Compiler
}

// WithDefaults returns the options with zero values replaced by defaults. It returns an error if an
// option is not valid.
func (o Options) WithDefaults() (Options, error) {
	o.Optimiser = cmp.Or(o.Optimiser, Paper)
	steps, size := paperSteps, paperStepSize
	switch o.Optimiser {
	case Paper:
	case Adam:
		steps, size = adamSteps, adamStepSize
	default:
		return o, fmt.Errorf("unknown optimiser %q: it must be %s or %s", o.Optimiser, Paper, Adam)
	}
	o.Steps = cmp.Or(o.Steps, steps)
	o.StepSize = cmp.Or(o.StepSize, size)
	o.SaveEvery = cmp.Or(o.SaveEvery, 15*time.Second)
	switch {
	case o.Steps < 1:
		return o, fmt.Errorf("steps is %d: it must be at least 1", o.Steps)
	case !(o.StepSize > 0) || o.StepSize > maxStep:
		return o, fmt.Errorf("step size %v: it must be above 0 and at most %v", o.StepSize, float64(maxStep))
	case o.Batch < 0:
		return o, fmt.Errorf("batch is %d: it must be a number of samples, or 0 for the default", o.Batch)
	}
	return o, o.Ball.Check()
}

// maxStep is the largest step size: the largest radius of a Ball.
const maxStep = ball.MaxRadius
