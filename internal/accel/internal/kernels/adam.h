// The update of Adam. For each element of the parameters p, their gradient g and its moments m and v:
//
//     next_m = beta1 m + g;  next_v = beta2 v + g^2;  next_p = k p - s next_m / (sqrt next_v + e)
//
// s is the step size, e avoids division by 0, and k is the factor of weight decay. The factors
// 1 - beta1 and 1 - beta2 of the usual moments and their bias corrections are part of s and e.
#ifndef NOETHER_KERNELS_ADAM_H
#define NOETHER_KERNELS_ADAM_H

#include <stddef.h>

typedef struct AdamConstants {
	float beta1, beta2;
} AdamConstants;

// AdamArrays are the arrays and scalars of the formula. The next values may have the memory of the
// current ones.
typedef struct AdamArrays {
	const float *p, *g, *m, *v;
	float *next_p, *next_m, *next_v;
	float rates[3]; // s, e and k
} AdamArrays;

// adam_update updates the elements from from to to, exclusive.
void adam_update(const AdamConstants *c, const AdamArrays *a, size_t from, size_t to);

#endif
