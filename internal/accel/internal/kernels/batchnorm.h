// BatchNormalization of a batch, and its gradient (the comment of the Go package, kernels.go, has
// all formulas). With f the identity or, if relu is set, ReLU, for each channel:
//
//     y = f(scale (x - mean) / sqrt(variance + epsilon) + bias + addend)
//
// In the gradient, g is dy, and 0 where the mask is not positive; sum is the sum of g, and along
// that of g (x - mean). A part, which one thread computes, is some channels.
#ifndef NOETHER_KERNELS_BATCHNORM_H
#define NOETHER_KERNELS_BATCHNORM_H

#include "microkernel.h"

// A BatchNorm holds the tensors of one BatchNormalization and of its gradient. They are samples x
// channels x pixels, or have an element for each channel.
typedef struct BatchNorm {
	size_t samples, channels, pixels;
	float epsilon;
	int relu;
	const float *x, *scale;
	float *mean, *variance;     // results; inputs of the gradient
	const float *bias, *addend; // addend may be NULL
	float *y;
	const float *dy, *mask;      // mask may be NULL
	float *dx, *masked;          // masked is g; it may be NULL
	float *sum, *along;          // results of the gradient
} BatchNorm;

size_t batch_norm_parts(const BatchNorm *b);
void batch_norm_part(void *work, size_t part);
void batch_norm_gradient_part(void *work, size_t part);

#endif
