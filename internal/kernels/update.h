// The arithmetic of optimisers, element by element: the package comment has the formulas.
#ifndef NOETHER_KERNELS_UPDATE_H
#define NOETHER_KERNELS_UPDATE_H

#include <stddef.h>

// Constants of an update.
typedef struct Constants {
	float decay, beta1, beta2, momentum, nesterov;
} Constants;

// Arrays of an update: the parameters, their gradient, what is remembered of them, and what these become. An array may be the one
// that it becomes. rates are those of the step.
typedef struct Arrays {
	const float *p, *g, *m, *v;
	float *next_p, *next_m, *next_v;
	float rates[3];
} Arrays;

typedef void (*Update)(const Constants *, const Arrays *, size_t from, size_t to);

Update adam_update(void);
Update momentum_update(void);

#endif
