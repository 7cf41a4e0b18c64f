#include "layers.h"

#include <math.h>

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

// Sums of float32 are kept in so many parts, over one sample's places; sums of these in float64.
enum { PARTS = 16 };

static inline __attribute__((always_inline)) void sums(const float *x, const float *dy, size_t n, float mean, double *sum, double *along) {
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

static inline __attribute__((always_inline)) void apply(const float *x, const float *dy, float *dx, size_t n, float mean, float slope, float shift, float factor) {
	for (size_t i = 0; i < n; i++)
		dx[i] = factor * dy[i] + (slope * (x[i] - mean) + shift);
}

static inline __attribute__((always_inline)) void one_channel(const NormGradient *g, size_t channel) {
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

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) static void wide_channel(const NormGradient *g, size_t channel) { one_channel(g, channel); }

void norm_gradient_channel(void *gradient, size_t channel) {
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		wide_channel(gradient, channel);
	else
		one_channel(gradient, channel);
}
#else
void norm_gradient_channel(void *gradient, size_t channel) { one_channel(gradient, channel); }
#endif
