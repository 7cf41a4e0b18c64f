// The update of Adam, element by element: the package comment has the formula.
#ifndef NOETHER_KERNELS_ADAM_H
#define NOETHER_KERNELS_ADAM_H

#include <stddef.h>

// Constants of an update.
typedef struct AdamConstants {
	float beta1, beta2;
} AdamConstants;

// Arrays of an update: parameters, gradient, moments, and what they become, which may be in place. rates are those of the
// step: s, e and k of the formula.
typedef struct AdamArrays {
	const float *p, *g, *m, *v;
	float *next_p, *next_m, *next_v;
	float rates[3];
} AdamArrays;

typedef void (*AdamUpdate)(const AdamConstants *, const AdamArrays *, size_t from, size_t to);

// adam_update returns the fastest update for this processor.
AdamUpdate adam_update(void);

#endif
