#include <stdint.h>

// Taps are the positions that values are read from, in the order of the positions place that they
// are written to: value k is interpolated between at[k], a step to the right of it, a step down, and
// both. fractions holds those between the columns and between the rows.
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

int planes_supported(void);
void planes_act(float *dst, const float *z, int channels, int positions, const int32_t *to, Taps forward, Taps back, int right, int down, float *scratch, double floor[2]);
PairSums planes_sums(const float *a, const float *b, int rows, int stride, Runs runs);
double planes_dot(const float *a, const float *b, int rows, int stride, Runs runs);
