//go:build amd64

#include "batchnorm.h"

#include <math.h>

#define AVX2 __attribute__((target("avx2,fma")))

// A part computes neighbouring channels: one, or as many as have at most PART_FLOATS pixels in a
// sample together, but no more than MAX_CHANNELS.
enum { PART_FLOATS = 1024, MAX_CHANNELS = 64 };

// channels_each returns the number of channels of a part; the last part may have fewer.
static size_t channels_each(const BatchNorm *b) {
	if (b->pixels >= PART_FLOATS)
		return 1;
	return b->pixels == 0 ? MAX_CHANNELS : min_size(MAX_CHANNELS, PART_FLOATS / b->pixels);
}

size_t batch_norm_parts(const BatchNorm *b) { return ceil_div(b->channels, channels_each(b)); }

// FOR_ROWS is a loop over the rows of a part. A row is the n pixels of a channel of a sample: k is
// the channel within the part, c the channel, and at the index of the row's first element.
#define FOR_ROWS                                                                                     \
	for (size_t s = 0; s < b->samples; s++)                                                      \
		for (size_t k = 0, c = first, at = (s * b->channels + c) * n; c < end; k++, c++, at += n)

AVX2 static void add_row(const float *x, size_t n, double *sum) {
	float s = 0;
#pragma omp simd reduction(+ : s)
	for (size_t i = 0; i < n; i++)
		s += x[i];
	*sum += s;
}

AVX2 static void add_squares(const float *x, size_t n, float mean, double *sum) {
	float s = 0;
#pragma omp simd reduction(+ : s)
	for (size_t i = 0; i < n; i++)
		s += (x[i] - mean) * (x[i] - mean);
	*sum += s;
}

// normalize_row computes y = f(slope x + shift + addend), where f is ReLU if relu is set.
AVX2 static void normalize_row(const float *x, const float *addend, size_t n, float slope, float shift, int relu, float *restrict y) {
	for (size_t i = 0; i < n; i++) {
		const float v = x[i] * slope + shift + (addend != NULL ? addend[i] : 0);
		y[i] = relu && v < 0 ? 0 : v; // NaN stays NaN
	}
}

void batch_norm_part(void *work, size_t part) {
	const BatchNorm *b = work;
	const size_t n = b->pixels, first = part * channels_each(b), end = min_size(first + channels_each(b), b->channels);
	const double count = (double)b->samples * n;
	double sum[MAX_CHANNELS] = {0}, squares[MAX_CHANNELS] = {0};
	float slope[MAX_CHANNELS], shift[MAX_CHANNELS];
	FOR_ROWS add_row(b->x + at, n, &sum[k]);
	for (size_t c = first; c < end; c++)
		b->mean[c] = sum[c - first] / count;
	FOR_ROWS add_squares(b->x + at, n, b->mean[c], &squares[k]);
	for (size_t k = 0, c = first; c < end; k++, c++) {
		b->variance[c] = squares[k] / count;
		slope[k] = b->scale[c] / sqrtf(b->variance[c] + b->epsilon);
		shift[k] = b->bias[c] - b->mean[c] * slope[k];
	}
	FOR_ROWS normalize_row(b->x + at, b->addend == NULL ? NULL : b->addend + at, n, slope[k], shift[k], b->relu, b->y + at);
}

// mask_row computes g, a row of dy with 0 where the mask is not positive. The mask is positive
// where f passes a value on, like y, the output of f.
AVX2 static void mask_row(const float *dy, const float *mask, size_t n, float *restrict g) {
	for (size_t i = 0; i < n; i++)
		g[i] = mask[i] > 0 ? dy[i] : 0;
}

// add_gradients adds the sum of g over a row to *sum, and that of g (x - mean) to *along.
AVX2 static void add_gradients(const float *g, const float *x, size_t n, float mean, double *sum, double *along) {
	float s = 0, a = 0;
#pragma omp simd reduction(+ : s, a)
	for (size_t i = 0; i < n; i++) {
		s += g[i];
		a += g[i] * (x[i] - mean);
	}
	*sum += s;
	*along += a;
}

// gradient_row computes dx = slope g + tilt (x - mean) + shift.
AVX2 static void gradient_row(const float *g, const float *x, size_t n, float mean, float slope, float tilt, float shift, float *dx) {
#pragma omp simd
	for (size_t i = 0; i < n; i++)
		dx[i] = slope * g[i] + (tilt * (x[i] - mean) + shift);
}

void batch_norm_gradient_part(void *work, size_t part) {
	const BatchNorm *b = work;
	const size_t n = b->pixels, first = part * channels_each(b), end = min_size(first + channels_each(b), b->channels);
	const double count = (double)b->samples * n;
	double sum[MAX_CHANNELS] = {0}, along[MAX_CHANNELS] = {0};
	float slope[MAX_CHANNELS], tilt[MAX_CHANNELS], shift[MAX_CHANNELS];
	// dx may hold masked dy until the last loop.
	float *masked = b->masked != NULL ? b->masked : b->dx;
	const float *g = b->mask != NULL ? masked : b->dy;
	FOR_ROWS {
		if (b->mask != NULL)
			mask_row(b->dy + at, b->mask + at, n, masked + at);
		add_gradients(g + at, b->x + at, n, b->mean[c], &sum[k], &along[k]);
	}
	for (size_t k = 0, c = first; c < end; k++, c++) {
		const double inverse = 1 / sqrt((double)b->variance[c] + b->epsilon), a = b->scale[c] * inverse;
		slope[k] = a;
		tilt[k] = -a * inverse * inverse * along[k] / count;
		shift[k] = -a * sum[k] / count;
		b->sum[c] = sum[k];
		b->along[c] = along[k];
	}
	FOR_ROWS gradient_row(g + at, b->x + at, n, b->mean[c], slope[k], tilt[k], shift[k], b->dx + at);
}
