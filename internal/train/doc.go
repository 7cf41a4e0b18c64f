// Package train trains ONNX models by gradient descent. The forward pass, the loss, the gradients
// and the optimiser's update are one graph, which ONNX Runtime executes once for each step.
//
// An ONNX model can be trained if its weights are named initializers and its operators have
// gradient rules. A Spec names the loss and the optimiser:
//
//	t, err := train.New(rt, train.Spec{
//		Model:     network,              // x: batch x 768 -> y: batch x 1
//		Loss:      train.SquaredError,
//		Optimiser: train.Adam{Rate: 1e-3, WeightDecay: 1e-3},
//	})
//	loss, err := t.Step(ctx, train.Batch{Inputs: []tensor.Tensor{x}, Targets: train.Targets{Target: y}})
//
// MLP, FlattenedMLP, ConvNet, ResNet, VGG and Segmenter build networks with random weights. With
// Spec.TrainingMode BatchNormalization uses the statistics of the batch and Dropout is active, as
// in PyTorch's train(). Without it BatchNormalization uses its running statistics and Dropout does
// nothing.
//
// Fit trains for several epochs, with validation samples, early stopping and checkpoints. Its
// samples are in memory (Arrays), or read from a data set and augmented while training runs
// (Stream). Model returns the network with its trained weights.
//
// SGD updates a parameter p with gradient g in step t = 1, 2, ... at the learning rate a by
//
//	g <- g + decay p;  v <- momentum v + g;  p <- p - a v
//	(Nesterov: p <- p - a (g + momentum v)).
//
// Adam (Kingma and Ba 2015, algorithm 1), with weight decay coupled as in PyTorch, is
//
//	g <- g + decay p;  m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2
//	p <- p - a (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps).
//
// AdamW (Loshchilov and Hutter 2019) decouples the decay: p <- (1 - a decay) p, followed by a step
// of Adam without decay. m and v start at 0, and b1, b2 and eps are the fields Beta1, Beta2 and
// Epsilon.
//
// Parameters and the optimiser's state are held in two sets of buffers. A step reads one set and
// writes the other.
package train
