#include <stdint.h>

// Sums are over the components of two vectors a and b: of a b, a^2, b^2, |a - b| and (a - b)^2.
typedef struct {
	double dot, aa, bb, abs, sqr;
} Sums;

// sums_level returns the largest level that the processor runs: 2 for AVX-512, 1 for AVX2 with FMA, 0
// for neither.
int sums_level(void);

// sums_of returns the sums over n components, by the kernel of a level from 1 on.
Sums sums_of(const float *a, const float *b, int64_t n, int level);
