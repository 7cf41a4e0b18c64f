#include <stdint.h>

// Sums are over the components of rows p, a and b: of a^2, b^2, |a - b|, (a - b)^2, |p - b| and
// (p - b)^2.
typedef struct {
	double aa, bb, abs, sqr, next_abs, next_sqr;
} Sums;

// sums_level returns the largest level that the processor runs: 2 for AVX-512, 1 for AVX2 with FMA, 0
// for neither.
int sums_level(void);

// sums_of_rows adds to out[r] the sums of row r of a and b, by the kernel of a level from 1 on. a and
// b hold rows of n components. p is the row of a before r. For row 0 it is a itself, unless previous
// is that row: then the sums of previous and row 0 of b are added to out[rows].
void sums_of_rows(Sums *out, const float *previous, const float *a, const float *b, int64_t rows, int64_t n, int level);
