// Tensors with their channels moved to the last axis or back.
#ifndef NOETHER_KERNELS_CHANNELS_H
#define NOETHER_KERNELS_CHANNELS_H

#include <stddef.h>

// A ChannelTranspose takes x, samples x rows x columns, to y, samples x columns x rows.
typedef struct ChannelTranspose {
	const float *x;
	float *y;
	size_t rows, columns;
} ChannelTranspose;

// transpose_part does one of the transpose_parts of each sample.
size_t transpose_parts(const ChannelTranspose *t);
void transpose_part(void *transpose, size_t part);

#endif
