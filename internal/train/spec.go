package train

import (
	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Spec describes a training.
type Spec struct {
	// Model is the network. Its inputs are float32 with the batch first. Training starts from the
	// values of its initializers.
	Model *onnx.Model
	// Output is the tensor that the loss is computed from; "": the model's only output.
	Output string
	// Parameters are the names of the weights to train. None: all weights with at least one axis
	// that the output depends on, except the running statistics of BatchNormalization.
	Parameters []string
	// TrainingMode corresponds to PyTorch's train(): BatchNormalization normalises by the
	// statistics of the batch and updates its running statistics with the node's momentum, and
	// Dropout is active. Without it BatchNormalization uses its running statistics, as for
	// fine-tuning in small batches, and Dropout does nothing.
	TrainingMode bool
	Seed         uint64 // of dropout masks, of Mixup and of the starting points of Adversarial
	Loss         Loss   // on Output
	Optimiser    Optimiser
	// Tasks are further losses, on other outputs. The loss of a sample is Loss plus the loss of
	// each task times its weight.
	Tasks []Task
	// Penalty, if not nil, writes the nodes of a scalar that is added to the mean loss of a batch
	// in each step, such as a constraint on activations. It can read the tensors of the model by
	// their names. The losses of steps and their mean over an epoch, Epoch.Train, include it;
	// losses of evaluations do not.
	Penalty func(b *onnx.Builder) onnx.Value
	// Mixup, if above 0, trains on pairs of samples (Zhang et al. 2018), of inputs x and targets t:
	// inputs are lambda x_i + (1 - lambda) x_j and the loss L of the output y is
	//
	//	lambda L(y, t_i) + (1 - lambda) L(y, t_j),
	//
	// where j permutes the batch and lambda, of the distribution Beta(Mixup, Mixup), is one number
	// for each batch. Training accuracies are mixed likewise. Evaluation does not mix.
	Mixup float64
	// Adversarial, if not nil, trains on adversarial examples and holds their settings.
	Adversarial *Adversarial
	// Schedule scales the learning rate; nil: Constant.
	Schedule Schedule
	// Clip is the largest norm of the gradients of all parameters together. Larger gradients are
	// scaled down. 0: no clipping.
	Clip float64
	// StepsPerRun is the number of steps in one run of ONNX Runtime; 0: 1. More steps make small
	// networks faster and the graph larger. Results are the same.
	StepsPerRun int
	// Engine holds the options of the sessions.
	Engine ort.Options
}

// A Batch holds b samples. Inputs are the values of the model's inputs, in order, each b x ....
type Batch struct {
	Inputs  []tensor.Tensor
	Targets           // of Spec.Loss
	Tasks   []Targets // of Spec.Tasks
}

func (b *Batch) len() int {
	if len(b.Inputs) == 0 {
		return 0
	}
	return b.Inputs[0].Shape[0]
}

// Metrics are the loss and the accuracy of a network on some samples.
type Metrics struct {
	Loss float64 // mean over samples
	// Accuracy is the fraction of samples, or the mean fraction of positions, for which the largest
	// output is that of the true class; NaN if targets are not classes.
	Accuracy float64
	// MeanIoU is the mean over the classes of masks of the intersection over union of predicted and
	// true positions, over all samples; NaN in training, and without masks.
	MeanIoU float64
}
