// Package autoencoder trains stacks of autoencoders layer by layer: each layer learns to describe
// what the one below it says, so that its input can be told from the description.
//
// It is section 3.1 of Goodfellow et al. (2009), after Bengio et al. (2007). A layer of m units on
// inputs of n values is
//
//	h = tanh(W1 x + b1),   y = tanh(W2 h + b2),
//
// W1 m x n and W2 n x m being trained apart from each other (untied), and Train minimises over
// patterns x
//
//	J = mean of |x - y|^2 + decay (|W1|^2 + |W2|^2) + weight sum over units of (target - mean of h)^2.
//
// The last term is the sparsity of Lee, Ekanadham and Ng (2008): it constrains what a unit does in
// the mean, here over a batch. The paper does not give the scales of its decays, nor how many units
// it has; inputs lie in [-1, 1].
//
//	first, err := autoencoder.Train(ctx, rt, patches, held, autoencoder.Settings{Units: 100, Decay: 1e-3})
//	inner, err := autoencoder.Encode(ctx, rt, first, patches)
//	second, err := autoencoder.Train(ctx, rt, inner, ...)
//	model, err := autoencoder.Model(14, 1, autoencoder.Branch{Name: "stack", Layers: []*autoencoder.Layer{first, second}})
//
// Model makes an ONNX model of one or more stacks, whose outputs are the layers of each; stacks
// that share lower layers share them there too. Images shows what units see.
package autoencoder
