// Package cdbn trains convolutional deep belief networks: layers of filters that are slid over an
// image, each followed by units that say whether their filter matched anywhere within a small
// block.
//
// It is the network of Lee, Grosse, Ranganath and Ng (2009) that section 3.2 of Goodfellow et al.
// (2009) tests. A layer is a restricted Boltzmann machine whose hidden units of group k share the
// filter W_k and the bias b_k. Of image v the unit at place x of group k is told
//
//	I_k(x) = b_k + sum over c, y of W_k,c(y) v_c(x + y),
//
// and of the units of a block B, 2 x 2 of a group, at most one is on (probabilistic max-pooling):
//
//	P(h_x = 1 | v) = exp I(x) / (1 + sum over B of exp I),    P(p_B = 1 | v) = 1 - 1 / (1 + sum over B of exp I).
//
// Visible units are Gaussian of deviation 1 with the mean c + sum over k of the filters where their
// units are on; above the first layer they are binary, with the probability that the logistic
// function makes of it. Train follows contrastive divergence of one step (CD-1): from images v to
// units h drawn given v, to the mean v' given h, to the units given v',
//
//	dW = mean over places of (v P(h|v) - v' P(h|v')) - decay W,   db = mean of (P(h|v) - P(h|v')) + weight (target - mean of P(h|v)),
//
// the last term being the sparsity that Lee et al. put on the bias. A step is one ONNX graph:
// convolutions, drawing and update. The second layer learns from the pooling units' probabilities
// in the first, and Model exports the network as the probabilities of its pooling units, layer by
// layer, for images of any size.
package cdbn
