// Package train trains networks: forward pass, loss, gradients and the optimiser's update are one ONNX graph, which the engine
// executes once for a step.
//
// What is trained is any ONNX model whose weights are named initializers. A Spec says with which loss and optimiser:
//
//	t, err := train.New(rt, train.Spec{
//		Model:     network,              // x: batch x 768 -> y: batch x 1
//		Loss:      train.SquaredError,
//		Optimiser: train.Adam{Rate: 1e-3, WeightDecay: 1e-3},
//	})
//	loss, err := t.Step(ctx, train.Batch{Inputs: []tensor.Tensor{x}, Target: y})
//
// MLP, ConvNet and ResNet build networks to start from. With TrainingMode their BatchNormalization goes by the batch and their
// Dropout drops, as in PyTorch's train(); without it the normalisation of a network that was trained already stays frozen.
//
// Fit does so for epochs over data, in memory (Arrays) or streamed from a data set with transformations as augmentation (Stream), with a validation set, early stopping and checkpoints; Model returns the network with
// what its weights have become.
//
// The update of a parameter p by its gradient g, with rate a in step t = 1, 2, ..., is for SGD
//
//	g <- g + decay p;  v <- momentum v + g;  p <- p - a v            (or p - a (g + momentum v) by Nesterov)
//
// and for Adam (Kingma and Ba 2015, algorithm 1) with coupled decay as PyTorch has it,
//
//	g <- g + decay p;  m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2
//	p <- p - a (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
//
// and for AdamW (Loshchilov and Hutter 2019) with decay apart, p <- (1 - a decay) p before a step without it.
// Parameters and the optimiser's memory stay in buffers that the engine reads and writes in place, two of each in turn.
package train
