#include <stddef.h>

typedef ptrdiff_t extent;

// Rows are n observations of cols variables, stride apart; observation k is the one at order[k] if there is an order.
// shift is taken off each.
void gram_pack(int lanes, float *dst, extent panels, extent first, const float *rows, extent stride, const extent *order, extent n, extent cols, const float *shift);

// Adds the products of the panels i0 to i1 of a with the panels j0 to j1 of b to sums in float64, in float32, or both:
// sums[i][j] += products + u[i] v[j]. They are rows x cols, or where triangle is set the upper triangle of that, row after
// row. c has room for the products.
void gram_add(int lanes, const float *a, extent a_panels, extent i0, extent i1, const float *b, extent b_panels, extent j0, extent j1, extent n,
	extent rows, extent cols, int triangle, float *c, double *wide, const double *wide_u, const double *wide_v, float *narrow, const double *narrow_u, const double *narrow_v);

// Adds products that a BLAS has formed, of the variables top to bottom with the variables left to right, their rows stride apart, to
// sums as gram_add has them; where triangle is set, those on and above the diagonal.
void gram_add_tile(int lanes, const float *products, extent stride, extent top, extent bottom, extent left, extent right, extent cols, int triangle,
	double *wide, const double *wide_u, const double *wide_v, float *narrow, const double *narrow_u, const double *narrow_v);

// Takes shift off n rows of cols values.
void gram_shift(int lanes, float *rows, extent n, extent cols, const float *shift);

// Adds n rows of cols values to sum.
void gram_sum(int lanes, double *sum, const float *rows, extent n, extent cols);

// The floats in a vector of this processor, or 0 where there is no kernel for it.
int gram_lanes(void);
