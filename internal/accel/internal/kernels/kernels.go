//go:build amd64

// Package kernels implements ONNX operators for the CPU, in C. Their domain is "noether". They take
// and return float32, and their results do not depend on the number of threads.
//
// Adam(p, g, m, v, s, e, k) returns the parameters p and the running sums m and v after a step with
// the gradient g: p', m', v'. The attributes are beta1 and beta2 (0 where absent):
//
//	m' = beta1 m + g;  v' = beta2 v + g^2;  p' = k p - s m' / (sqrt v' + e)
//
// The step size s, the term e that avoids division by 0 and the weight decay factor k are scalars.
// The other tensors have the same shape. The factors 1 - beta1 and 1 - beta2 of the usual moments
// and their bias corrections are part of s and e.
//
// BatchNormalization(x, scale, bias, addend) returns y and, for each channel c, the mean and the
// variance of x over the N values of c in the batch. The attributes are epsilon and relu; f is ReLU
// if relu is 1, else the identity. addend is optional:
//
//	y = f(scale[c] (x - mean[c]) / sqrt(variance[c] + epsilon) + bias[c] + addend)
//
// BatchNormalizationGradient(dy, x, scale, mean, variance, mask) returns dx, the gradient of the
// loss by x, given that by y, dy. mask is optional: it is positive where f, as ReLU, passes a value
// on, like the output of f. g, the gradient before f, is dy, and 0 where the mask is not positive.
// Further outputs are sum (the gradient by bias), along and, optionally, g (the gradient by
// addend):
//
//	sum[c] = sum of g;  along[c] = sum of g (x - mean[c]);  with i = 1 / sqrt(variance[c] + epsilon):
//	dx = scale[c] i (g - sum[c] / N - (x - mean[c]) i^2 along[c] / N)
//
// Conv(x, w, bias) is ONNX's operator without groups, along one or two axes, with the kernel
// w; bias is optional. ConvTranspose(dy, w) is the standard operator, with output_padding, and the
// gradient of Conv by x. ConvKernelGradient(x, dy) is the gradient of Conv by w, of which the
// attribute kernel_shape is the size. All three have the attributes strides, dilations and pads of
// Conv. With samples n, input channels c, output channels o, pixels i and kernel offsets k along
// all axes, and the padding before each axis:
//
//	y[n, o, i] = bias[o] + sum over c, k of w[o, c, k] x[n, c, i stride + k dilation - before]
//	dx[n, c, i stride + k dilation - before] = sum over o, k of w[o, c, k] dy[n, o, i]
//	dw[o, c, k] = sum over n, i of dy[n, o, i] x[n, c, i stride + k dilation - before]
//
// Each is a matrix product. One matrix is copied into panels, blocks of rows that fill vectors; the
// other is read in place by lists of addresses, as in Dukhan 2019, "The Indirect Convolution
// Algorithm". Kernels of 3 x 3 with strides and dilations of 1 and at least 16 channels on both
// sides use Winograd's algorithm (Lavin and Gray 2016, "Fast Algorithms for Convolutional Neural
// Networks", section 4.1). An output tile of 2 x 2 pixels takes 16 multiplications for each pair of
// channels instead of 36. With the input tile x of 4 x 4 pixels, the elementwise product * and '
// for the transpose of a matrix:
//
//	y = A' sum over c of ((G w G') * (B' x B)) A,  dw = G' sum over tiles of ((A dy A') * (B' x B)) G,
//	     | 1  0 -1  0 |      | 1    0   0  |       | 1  1  1  0 |
//	B' = | 0  1  1  0 |  G = | 1/2 1/2 1/2 |  A' = | 0  1 -1 -1 |
//	     | 0 -1  1  0 |      | 1/2 -1/2 1/2|
//	     | 0  1  0 -1 |      | 0    0   1  |
//
// G w G' is computed once if weights are constant. If the attribute side is 4, tiles have 4 x 4
// pixels: they take 36 multiplications instead of 144. The interpolation points 0, p, -p, q, -q and
// infinity with p = 5/8 and q = 3/2 keep the rounding error near that of a plain sum (see Barabasz
// et al. 2020, "Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural
// Networks"):
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
// ConvChannelsLast(x, w, bias, addend, mask) and ConvTransposeChannelsLast(dy, w, , addend, mask)
// are Conv and ConvTranspose for images in NHWC, samples x height x width x channels, followed by
// the operations
//
//	y = f(convolution + addend), and 0 where mask is not positive
//
// with f the identity, or ReLU where the attribute relu is 1. bias, addend and mask are optional.
// ConvChannelsLast has up to four outputs: y in NHWC, and in NCHW y, convolution + addend, and
// convolution. Each may be left out; y in NHWC only without a mask. Kernels of 3 x 3 with strides
// and dilations of 1 use Winograd's algorithm with any number of channels.
//
// ChannelsLast(x) moves the second axis of x to the end, and ChannelsFirst(x) the last axis to the
// second place.
//
// The attribute lanes of convolutions is the largest number of float32 in a vector: 8, 16 or, by
// default, 0. With 0 they take the widest vectors of the processor, except in NHWC if the channels
// of the result fill an odd number of blocks of 16: vectors of 8 then leave no panel half empty.
package kernels

// #cgo CFLAGS: -O3 -fopenmp-simd
// #cgo !windows LDFLAGS: -lm
// #include <stdlib.h>
// #include "operators.h"
// #include "microkernel.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/cpu"

	_ "github.com/noether-ml/noether/internal/accel/internal/kernels/vendored" // headers
)

func init() {
	width := 0
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		width = 8
		if cpu.X86.HasAVX512F {
			width = 16
		}
	}
	C.set_vector_width(C.int(width))
}

// Width returns the number of float32 in a vector of this processor: 16 with AVX-512, 8 with AVX2,
// and 0 without these: then the operators do not run.
func Width() int { return int(C.vector_width()) }

// Load prepares the operators for an ONNX Runtime library, given its OrtApi of version 24 or later.
// It is called once.
func Load(api unsafe.Pointer) error {
	return failure(C.kernels_load(api))
}

// Register adds the operators to the options of a session (OrtSessionOptions).
func Register(options unsafe.Pointer) error {
	return failure(C.kernels_register(options))
}

// failure converts an error message of the C code to an error, and frees the message. It returns
// nil for NULL.
func failure(text *C.char) error {
	if text == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(text))
	return fmt.Errorf("native operators: %w", errors.New(C.GoString(text)))
}
