// The action tau of a transformation on feature maps. A position is the index of a pixel in a
// channel of height x width values.

#include <stdint.h>

// Taps say how n values are interpolated. Value k is written to position place[k]. It is
// interpolated between four positions: at[k], the one to its right, the one below it, and the one
// below and to the right. fractions[2 k] is the weight of the right column, from 0 to 1, and
// fractions[2 k + 1] that of the lower row.
typedef struct {
	const int32_t *place, *at;
	const float *fractions;
	int n;
} Taps;

// Runs are n ranges of consecutive positions. Range k is ends[2 k] to ends[2 k + 1] (excluded).
typedef struct {
	const int32_t *ends;
	int n;
} Runs;

// PairSums are sums over the values of two rows a and b.
typedef struct {
	double difference; // of (a - b)^2
	double aa, bb;     // of a^2 and b^2
} PairSums;

// planes_act writes tau z to dst, by the taps forward; channel c of z goes to channel to[c]. z and
// dst hold channels x positions values. right and down are the steps from a position to those to
// its right and below it. scratch has room for 16 x positions values. If floor is not NULL,
// |tau^-1 tau z - z|^2 is added to floor[0] and |z|^2 to floor[1]. tau^-1 is given by the taps
// back, and both sums are over the positions of back.
void planes_act(float *dst, const float *z, int channels, int positions, const int32_t *to, Taps forward, Taps back, int right, int down, float *scratch, double floor[2]);

// planes_sums returns the sums over the runs of each row of a and b. Rows are stride values apart.
PairSums planes_sums(const float *a, const float *b, int rows, int stride, Runs runs);

// planes_dot returns the sum of the products a b over the runs of each row.
double planes_dot(const float *a, const float *b, int rows, int stride, Runs runs);
