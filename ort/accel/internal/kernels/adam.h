// The update of Adam: the package comment has the formula.
#ifndef NOETHER_KERNELS_ADAM_H
#define NOETHER_KERNELS_ADAM_H

#include <stddef.h>

typedef struct AdamConstants {
	float beta1, beta2;
} AdamConstants;

// AdamArrays are the parameters, their gradient and moments, and the next values of parameters and
// moments. The next values may have the memory of the current ones.
typedef struct AdamArrays {
	const float *p, *g, *m, *v;
	float *next_p, *next_m, *next_v;
	float rates[3]; // s, e and k of the formula
} AdamArrays;

// adam_update updates the elements from from to to, exclusive.
void adam_update(const AdamConstants *c, const AdamArrays *a, size_t from, size_t to);

#endif
