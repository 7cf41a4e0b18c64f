// The arithmetic of layers: the package comment has the formulas. Each function does a part of the work, and parts do not depend on one another.
#ifndef NOETHER_KERNELS_LAYERS_H
#define NOETHER_KERNELS_LAYERS_H

#include <stddef.h>

// Weights, out x in x taps, to in x out x taps with the taps in the opposite order.
typedef struct Mirror {
	const float *w;
	float *mirrored;
	size_t out, in, taps;
} Mirror;

// mirror_rows does so many rows of the result, from one on.
enum { MIRROR_ROWS = 16 };
void mirror_rows(void *mirror, size_t part);

// The gradient of a normalisation by the batch: x and dy are samples x channels x places.
typedef struct NormGradient {
	const float *x, *dy, *scale, *mean, *variance;
	float *dx, *dscale, *dbias;
	size_t samples, channels, places;
	float epsilon;
} NormGradient;

// norm_gradient_channel does one channel.
void norm_gradient_channel(void *gradient, size_t channel);

// A normalisation by the batch of x, samples x channels x places.
typedef struct Norm {
	const float *x, *scale, *bias;
	float *y, *mean, *variance;
	size_t samples, channels, places;
	float epsilon;
} Norm;

// norm_channel does one channel.
void norm_channel(void *norm, size_t channel);

// The gradient of max(x, 0), which is y: dy where y is above 0.
typedef struct ReluGradient {
	const float *y, *dy;
	float *dx;
	size_t count;
} ReluGradient;

// relu_gradient_block does so many elements.
enum { RELU_BLOCK = 1 << 14 };
void relu_gradient_block(void *gradient, size_t block);

// A turn of x, samples x rows x columns, to samples x columns x rows.
typedef struct Turn {
	const float *x;
	float *y;
	size_t rows, columns;
} Turn;

// turn_part does one of so many parts of a sample.
size_t turn_parts(const Turn *t);
void turn_part(void *turn, size_t part);

#endif
