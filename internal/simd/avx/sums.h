#include <stdint.h>

// Sums are those of a row a, a row b and the row p before a: over their components, the sums of
// a^2, b^2, |a - b|, (a - b)^2, |p - b| and (p - b)^2. a and b are x and T(x) of a sample, so p and
// b are a shuffled pair, for the null.
typedef struct {
	double aa, bb, abs, sqr, next_abs, next_sqr;
} Sums;

// sums_of_rows adds to out[r] the sums of row r of a and b, for each of the rows. a and b hold rows
// of n components. p is row r - 1 of a; for row 0, p is row 0 itself. If previous, the row of a
// before row 0, is not NULL, the sums with previous as both a and p, and with row 0 of b, are added
// to out[rows]. level is that of the vector instructions: 1 for AVX2 with FMA, 2 for
// AVX-512.
void sums_of_rows(Sums *out, const float *previous, const float *a, const float *b, int64_t rows, int64_t n, int level);
