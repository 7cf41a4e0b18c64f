// Package kernels gives ONNX Runtime operators of our own, for what its own ones take many passes over memory, or one core: the updates of
// optimisers, layers in training, and parts of gradients. They are of the domain "noether", in float32, and for the processor alone.
//
// Adam(p, g, m, v, s, e, k) gives p', m', v' (what m and v leave out is in s and e: see train.Adam):
//
//	g <- g + decay p;  m' = beta1 m + g;  v' = beta2 v + g^2;  p' = k p - s m' / (sqrt v' + e)
//
// Momentum(p, g, v, a) gives p', v':
//
//	g <- g + decay p;  v' = momentum v + g;  p' = p - a v'            (or p - a (g + momentum v') where nesterov is 1)
//
// Mirror(w) gives weights, out x in x kernel, as in x out x taps: the taps of the kernel in one axis, in the opposite order.
//
// BatchNormalization(x, scale, bias) gives y, mean, variance: x, samples x channels x space, normalised by mean and variance of the batch,
//
//	y = scale (x - mean) / sqrt(variance + epsilon) + bias
//
// BatchNormalizationGradient(x, dy, scale, mean, variance) gives dx, dscale, dbias. With n numbers in a channel, r = 1 / sqrt(variance + epsilon), and sums over a channel,
//
//	dbias = sum dy;  dscale = r sum dy (x - mean);  dx = scale r (dy - dbias / n - (x - mean) r dscale / n)
//
// ReluGradient(y, dy) gives dy where y is above 0, and else 0.
//
// Convolution(x, w, bias) gives y as the standard Conv does, without groups, for weights that change from run to run and for constant ones, of which it prepares what follows. Bias may be left
// out. ConvolutionInputGradient(dy, w, x) gives its gradient by x, of which only the shape is read, and ConvolutionKernelGradient(x, dy, w) that by w.
// Images have one axis or two, strides, dilations and pads are given for each, and with i, k along them all
//
//	y[n, o, i] = bias[o] + sum over c, k of w[o, c, k] x[n, c, i stride + k dilation - before]
//	dx[n, c, i stride + k dilation - before] = sum over o, k of w[o, c, k] dy[n, o, i]
//	dw[o, c, k] = sum over n, i of dy[n, o, i] x[n, c, i stride + k dilation - before]
//
// Each is a product of matrices that are nowhere written out: one is laid out in panels, and of the other only the places are listed, as in Dukhan 2019, "The
// Indirect Convolution Algorithm". Where kernels are 3 x 3, with strides and dilations of 1, and there are 16 channels at least on both sides, squares of 2 x 2 places take
// 16 products for each pair of channels in place of 36 (Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural Networks", section 4.1): with x the 4 x 4 places that a
// square reads, * element by element,
//
//	y = A' sum over c of ((G w G') * (B' x B)) A,  dw = G' sum over squares of ((A dy A') * (B' x B)) G,
//	     | 1  0 -1  0 |      | 1    0   0  |       | 1  1  1  0 |
//	B' = | 0  1  1  0 |  G = | 1/2 1/2 1/2 |  A' = | 0  1 -1 -1 |
//	     | 0 -1  1  0 |      | 1/2 -1/2 1/2|
//	     | 0  1  0 -1 |      | 0    0   1  |
//
// G w G' is worked out once where weights are constant.
//
// ConvolutionLast(x, w, bias, more, mask) and ConvolutionInputGradientLast(dy, w, x, more, mask) are the same for images with their channels last, samples x height x width x
// channels, with what often follows them in the same pass:
//
//	y = f(convolution + more), and 0 where mask is not above 0
//
// with f the identity, or max(0, .) where the attribute relu is 1. Bias, more and mask may be left out. ConvolutionLast gives up to three outputs more, with the channels first: y, convolution + more, and the
// convolution alone; each of the four may be left out, y itself where there is no mask. Where the attribute side is 4, kernels of 3 x 3, with any channels, go by squares of
// 4 x 4 places, which take 36 products in place of 144, and with the points 0, p, -p, q, -q and infinity, p = 5/8 and q = 3/2 (see Barabasz et al. 2020, "Error Analysis and Improving the Accuracy
// of Winograd Convolution for Deep Neural Networks", on the choice of points) lose no more digits than some sums over taps do:
//
//	     | (pq)^2     0      -p^2-q^2      0      1  0 |      | 1/(pq)^2  0       0      |       | 1   1    1    1    1    0 |
//	     | 0      -p q^2     -q^2          p      1  0 |      | a         a p     a p^2  |  A' = | 0   p   -p    q   -q    0 |
//	B' = | 0       p q^2     -q^2         -p      1  0 |  G = | a        -a p     a p^2  |       | 0  p^2  p^2  q^2  q^2   0 |
//	     | 0      -q p^2     -p^2          q      1  0 |      | b         b q     b q^2  |       | 0  p^3 -p^3  q^3 -q^3   1 |
//	     | 0       q p^2     -p^2         -q      1  0 |      | b        -b q     b q^2  |
//	     | 0      (pq)^2      0        -p^2-q^2   0  1 |      | 0         0       1      |
//
// with a = 1 / (2 p^2 (p^2 - q^2)) and b = 1 / (2 q^2 (q^2 - p^2)).
//
// ChannelsLast(x) moves the second axis of x to the end, and ChannelsFirst(x) the last one to the second place.
//
// The attribute lanes is how wide vectors are, 8 or 16, and 0 as this processor has them.
//
// s, e, k and a are tensors of one number; decay, beta1, beta2, momentum, nesterov and epsilon attributes, 0 where they are absent. p, g, m and v have one
// shape. Each number is computed the same way whatever the number of threads.
package kernels

// #cgo CFLAGS: -O3
// #cgo !windows LDFLAGS: -lm
// #include <stdlib.h>
// #include "operators.h"
// #include "tile.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// The operators, and their domain.
const (
	Domain   = "noether"
	Adam     = "Adam"
	Momentum = "Momentum"
	Mirror   = "Mirror"

	BatchNormalization         = "BatchNormalization"
	BatchNormalizationGradient = "BatchNormalizationGradient"
	ReluGradient               = "ReluGradient"

	Convolution               = "Convolution"
	ConvolutionInputGradient  = "ConvolutionInputGradient"
	ConvolutionKernelGradient = "ConvolutionKernelGradient"

	ConvolutionLast              = "ConvolutionLast"
	ConvolutionInputGradientLast = "ConvolutionInputGradientLast"

	ChannelsLast  = "ChannelsLast"
	ChannelsFirst = "ChannelsFirst"
)

// Convolves reports whether the convolutions are fast on this processor: it has AVX2 or AVX-512. On others they come to the same, slowly.
func Convolves() bool { return C.tile_fast() != 0 }

// Load prepares the operators for a library, given its OrtApi (version 24 or later). It is called once.
func Load(api unsafe.Pointer) error {
	return failure(C.kernels_load(api))
}

// Add gives a session's options (OrtSessionOptions) the operators.
func Add(options unsafe.Pointer) error {
	return failure(C.kernels_add(options))
}

func failure(text *C.char) error {
	if text == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(text))
	return fmt.Errorf("operators of Noether: %w", errors.New(C.GoString(text)))
}
