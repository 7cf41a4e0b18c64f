// Package cdbn trains convolutional deep belief networks. Each layer is a set of filters that are
// convolved with an image, followed by pooling units. A pooling unit is on if a hidden unit of its
// block is on.
//
// It is the network of Lee, Grosse, Ranganath and Ng (2009) that section 3.2 of Goodfellow et al.
// (2009) tests. A layer is a restricted Boltzmann machine. The hidden units of group k share the
// filter W_k and the bias b_k. For an image v the input of the unit at position x of group k is
//
//	I_k(x) = b_k + sum over channels j and positions y of W_k,j(y) v_j(x + y).
//
// At most one unit of a block B, 2 x 2 positions of a group, is on (probabilistic max-pooling). For
// a unit h_x of the block and its pooling unit p_B,
//
//	P(h_x = 1 | v) = exp I(x) / (1 + sum over B of exp I),
//	P(p_B = 1 | v) = 1 - 1 / (1 + sum over B of exp I).
//
// Visible units are Gaussian with standard deviation 1. Their mean is a bias c_j of the channel
// plus the sum of the filters at the positions of units that are on. Above the first layer they are
// binary, with the logistic function of that sum as probability. Train uses contrastive divergence
// with one step (CD-1): it draws units h given images v, computes the mean v' given h, and changes
// the parameters along
//
//	dW = mean over positions of (v P(h|v) - v' P(h|v')) - decay W,
//	db = mean of (P(h|v) - P(h|v')) + weight (target - mean of P(h|v)),   dc = mean of (v - v').
//
// where decay, weight and target are fields of Settings. The last term of db is the sparsity
// penalty of Lee et al. on the bias. A step is one ONNX graph: convolutions, sampling and update.
// The second layer is trained on the probabilities of the pooling units of the first. Model returns
// the network as an ONNX model for images of any size, with the probabilities of the pooling units
// of each layer as outputs.
package cdbn
