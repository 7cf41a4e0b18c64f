// Package autoencoder trains stacks of autoencoders layer by layer. Each layer learns to encode the
// activations of the layer below so that they can be reconstructed.
//
// It follows section 3.1 of Goodfellow et al., "Measuring invariances in deep networks" (2009),
// after Bengio et al. (2007). A layer of m units encodes an input x of n values, called a pattern,
// as h, and reconstructs it as y:
//
//	h = tanh(W1 x + b1),   y = tanh(W2 h + b2),
//
// with separate (untied) weights W1, m x n, and W2, n x m. Train minimises the loss J, whose means
// are over the patterns of a batch, with the decay, weight and target of its Settings:
//
//	J = mean of |x - y|^2 + decay (|W1|^2 + |W2|^2) + weight sum over units of (target - mean of h)^2.
//
// The last term is the sparsity penalty of Lee, Ekanadham and Ng (2008) on the mean activation of a
// unit. Goodfellow et al. do not state their weight decays or numbers of units. Inputs lie within
// [-1, 1].
//
//	first, err := autoencoder.Train(ctx, rt, patches, validation, autoencoder.Settings{Units: 100, Decay: 1e-3})
//	inner, err := autoencoder.Encode(ctx, rt, first, patches)
//	second, err := autoencoder.Train(ctx, rt, inner, ...)
//	stack := autoencoder.Branch{Name: "stack", Layers: []*autoencoder.Layer{first, second}}
//	model, err := autoencoder.Model(14, 1, stack) // images of 14 x 14 pixels and 1 channel
//
// Model returns an ONNX model of one or more stacks, whose outputs are their layers. Stacks that
// share lower layers share them in the model. Images returns the filters of the units.
package autoencoder
