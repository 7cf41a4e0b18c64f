#include <stdint.h>

// Taps say how n values are interpolated. Value k is written to position place[k]. It is read at
// four positions: at[k], a step to the right of it, a step down, and both. fractions[2 k] is the
// weight of the right column in 0 to 1, and fractions[2 k + 1] that of the lower row.
typedef struct {
	const int32_t *place, *at;
	const float *fractions;
	int n;
} Taps;

// Runs are ranges of consecutive positions: from, to (excluded) for each.
typedef struct {
	const int32_t *ends;
	int n;
} Runs;

// PairSums are sums over the values of two rows a and b.
typedef struct {
	double difference; // of (a - b)^2
	double aa, bb;
} PairSums;

// planes_supported reports whether the processor has AVX2.
int planes_supported(void);

// planes_act writes tau z to dst, by the taps forward; channel c of z goes to channel to[c]. z and
// dst hold channels x positions values. right and down are the steps of the taps, in positions.
// scratch has room for 16 x positions values. If floor is not NULL, |tau^-1 tau z - z|^2 and |z|^2
// are added to it. tau^-1 is given by the taps back, and both sums are over the positions of back.
void planes_act(float *dst, const float *z, int channels, int positions, const int32_t *to, Taps forward, Taps back, int right, int down, float *scratch, double floor[2]);

// planes_sums returns the sums over the runs of each row of a and b. Rows are stride values apart.
PairSums planes_sums(const float *a, const float *b, int rows, int stride, Runs runs);

// planes_dot returns the sum of a b over the runs of each row.
double planes_dot(const float *a, const float *b, int rows, int stride, Runs runs);
