#include "layers.h"

#include <math.h>

#include "tile.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

void mirror_rows(void *mirror, size_t part) {
	const Mirror *m = mirror;
	const size_t from = part * MIRROR_ROWS, to = from + MIRROR_ROWS < m->in ? from + MIRROR_ROWS : m->in;
	for (size_t o = 0; o < m->out; o++) // rows side by side lie together in w
		for (size_t i = from; i < to; i++) {
			const float *w = m->w + (o * m->in + i) * m->taps;
			float *to_taps = m->mirrored + (i * m->out + o) * m->taps;
			for (size_t k = 0; k < m->taps; k++)
				to_taps[k] = w[m->taps - 1 - k];
		}
}

// Parts have so many rows, and go by as many columns as fill a line of a cache.
enum { TURN_ROWS = 64, TURN_COLUMNS = 16 };

size_t turn_parts(const Turn *t) { return (t->rows + TURN_ROWS - 1) / TURN_ROWS; }

void turn_part(void *turn, size_t part) {
	const Turn *t = turn;
	const size_t parts = turn_parts(t), sample = part / parts * t->rows * t->columns, row = part % parts * TURN_ROWS;
	const size_t rows = row + TURN_ROWS < t->rows ? TURN_ROWS : t->rows - row;
	const float *from = t->x + sample + row * t->columns;
	float *to = t->y + sample + row;
	for (size_t c = 0; c < t->columns; c += TURN_COLUMNS)
		transpose(from + c, t->columns, to + c * t->rows, t->rows, rows, c + TURN_COLUMNS < t->columns ? TURN_COLUMNS : t->columns - c);
}

#define INSIDE static inline __attribute__((always_inline))

// Sums of float32 are kept in so many parts, over one sample's places; sums of these in float64.
enum { PARTS = 16 };

INSIDE void sums(const float *x, const float *dy, size_t n, float mean, double *sum, double *along) {
	float s[PARTS] = {0}, a[PARTS] = {0};
	size_t i = 0;
	for (; i + PARTS <= n; i += PARTS)
		for (size_t k = 0; k < PARTS; k++) {
			s[k] += dy[i + k];
			a[k] += dy[i + k] * (x[i + k] - mean);
		}
	for (size_t k = 0; i < n; i++, k++) {
		s[k] += dy[i];
		a[k] += dy[i] * (x[i] - mean);
	}
	for (size_t k = 0; k < PARTS; k++) {
		*sum += s[k];
		*along += a[k];
	}
}

INSIDE void apply(const float *x, const float *dy, float *dx, size_t n, float mean, float slope, float shift, float factor) {
	for (size_t i = 0; i < n; i++)
		dx[i] = factor * dy[i] + (slope * (x[i] - mean) + shift);
}

INSIDE void one_channel(const NormGradient *g, size_t channel) {
	const double inverse = 1 / sqrt((double)g->variance[channel] + g->epsilon), count = (double)g->samples * g->places;
	const float mean = g->mean[channel];
	double sum = 0, along = 0;
	for (size_t b = 0; b < g->samples; b++) {
		const size_t at = (b * g->channels + channel) * g->places;
		sums(g->x + at, g->dy + at, g->places, mean, &sum, &along);
	}
	const double factor = g->scale[channel] * inverse;
	const double slope = -factor * inverse * inverse * along / count, shift = -factor * sum / count;
	for (size_t b = g->samples; b-- > 0;) { // the last first, as they are still in the cache
		const size_t at = (b * g->channels + channel) * g->places;
		apply(g->x + at, g->dy + at, g->dx + at, g->places, mean, slope, shift, factor);
	}
	g->dscale[channel] = along * inverse;
	g->dbias[channel] = sum;
}

// total is the sum of n numbers, or of their squares, less shift.
INSIDE double total(const float *x, size_t n, float shift, int square) {
	float s[PARTS] = {0};
	size_t i = 0;
	for (; i + PARTS <= n; i += PARTS)
		for (size_t k = 0; k < PARTS; k++) {
			const float d = x[i + k] - shift;
			s[k] += square ? d * d : d;
		}
	for (size_t k = 0; i < n; i++, k++) {
		const float d = x[i] - shift;
		s[k] += square ? d * d : d;
	}
	double sum = 0;
	for (size_t k = 0; k < PARTS; k++)
		sum += s[k];
	return sum;
}

INSIDE void normalise(const Norm *m, size_t channel) {
	const size_t step = m->channels * m->places;
	const float *x = m->x + channel * m->places;
	float *y = m->y + channel * m->places;
	const double count = (double)m->samples * m->places;
	double sum = 0, squares = 0;
	for (size_t b = 0; b < m->samples; b++)
		sum += total(x + b * step, m->places, 0, 0);
	const float mean = sum / count;
	for (size_t b = 0; b < m->samples; b++)
		squares += total(x + b * step, m->places, mean, 1);
	const double variance = squares / count;
	const float factor = m->scale[channel] / sqrt(variance + m->epsilon), bias = m->bias[channel];
	for (size_t b = 0; b < m->samples; b++)
		for (size_t i = 0; i < m->places; i++)
			y[b * step + i] = (x[b * step + i] - mean) * factor + bias;
	m->mean[channel] = mean;
	m->variance[channel] = variance;
}

INSIDE void keep(const ReluGradient *g, size_t block) {
	const size_t from = block * RELU_BLOCK, to = from + RELU_BLOCK < g->count ? from + RELU_BLOCK : g->count;
	for (size_t i = from; i < to; i++)
		g->dx[i] = g->y[i] > 0 ? g->dy[i] : 0;
}

#if defined(__x86_64__)
// Each of them for processors with AVX2, and for others.
#define EITHER(name, type, work)                                                                            \
	__attribute__((target("avx2,fma"))) static void name##_wide(const type *w, size_t i) { work(w, i); } \
	void name(void *w, size_t i) {                                                                      \
		if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))                         \
			name##_wide(w, i);                                                                  \
		else                                                                                        \
			work(w, i);                                                                         \
	}
#else
#define EITHER(name, type, work) \
	void name(void *w, size_t i) { work(w, i); }
#endif

EITHER(norm_gradient_channel, NormGradient, one_channel)
EITHER(norm_channel, Norm, normalise)
EITHER(relu_gradient_block, ReluGradient, keep)
