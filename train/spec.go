package train

import (
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/tensor"
)

// A Spec says what is trained, and how.
type Spec struct {
	// Model is the network: float32 inputs with the batch first, and weights as initializers, whose values are where training
	// starts.
	Model *onnx.Model
	// Output is the tensor that the loss is of; empty: the model's only output.
	Output string
	// Parameters are the names of the weights to train; none: all that the output depends on and that have axes, but the
	// running statistics of BatchNormalization.
	Parameters []string
	// TrainingMode is what PyTorch's train() is: BatchNormalization normalises by the batch, its running statistics follow with
	// the momentum of the node, and Dropout drops. Without it the one normalises by the statistics that the model has, as
	// one wants it where a trained network is tuned in small batches, and the other does nothing.
	TrainingMode bool
	Seed         uint64 // of what Dropout drops
	Loss         Loss
	Optimiser    Optimiser
	// Penalty, if any, writes the nodes of a number that is added to a batch's mean loss in a step, such as a constraint on what
	// the batch makes units do; tensors of the model have the names that they have there. Losses are without it.
	Penalty func(b *onnx.Builder) onnx.Value
	// Schedule scales the optimiser's rate; nil: Constant.
	Schedule Schedule
	// Clip is the largest norm that the gradients of all parameters may have together; larger ones are scaled down. 0: none.
	Clip float64
	// Together is how many steps are one run of the engine; 0: 1. Small networks gain by several, at the price of a larger
	// graph. What is computed is the same.
	Together int
	// Engine says how the graphs are executed.
	Engine ort.Options
}

// A Batch is some samples: what the model's inputs are fed, in order, each b x ..., and what the loss compares with.
type Batch struct {
	Inputs  []tensor.Tensor
	Target  tensor.Tensor // where the loss compares with numbers
	Classes []int         // where it compares with classes
}

// len is the number of samples.
func (b *Batch) len() int {
	if len(b.Inputs) == 0 {
		return 0
	}
	return b.Inputs[0].Shape[0]
}

// Marks are how well a network does.
type Marks struct {
	Loss     float64 // the mean over samples
	Accuracy float64 // the share of samples whose class is the network's first; NaN where the loss knows no classes
}
