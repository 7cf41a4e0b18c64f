//go:build amd64 && cgo

// Kernels with AVX2 for feature maps z stored as channels x positions (see planes.h). A plane holds
// the values of one channel. A block holds positions x width values: width channels, interleaved.

#include "planes.h"

#include <immintrin.h>
#include <string.h>

#define PRAGMA(...) _Pragma(#__VA_ARGS__)
#ifdef __clang__
PRAGMA(clang attribute push(__attribute__((target("avx2"))), apply_to = function))
#else
PRAGMA(GCC push_options)
PRAGMA(GCC target("avx2"))
#endif

enum {
	width = 8,   // channels that are interpolated at once
	part = 1024, // values that are added in float before they are added in double
};

static int minimum(int a, int b) { return a < b ? a : b; }

// transpose reads width rows of width values, which begin step values apart, and returns the
// columns in c.
static inline void transpose(__m256 c[width], const float *rows, int64_t step) {
	__m256 r[width], t[width];
	for (int i = 0; i < width; i++)
		r[i] = _mm256_loadu_ps(rows + i * step);
	for (int i = 0; i < width; i += 2) {
		t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
		t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
	}
	for (int i = 0; i < width; i += 4)
		for (int h = 0; h < 2; h++) {
			r[i + 2 * h] = _mm256_shuffle_ps(t[i + h], t[i + 2 + h], _MM_SHUFFLE(1, 0, 1, 0));
			r[i + 2 * h + 1] = _mm256_shuffle_ps(t[i + h], t[i + 2 + h], _MM_SHUFFLE(3, 2, 3, 2));
		}
	for (int i = 0; i < 4; i++) {
		c[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
		c[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
	}
}

// interleave writes the planes of at most width channels to block. Channels beyond these are 0.
static void interleave(float *block, const float *planes, int channels, int positions) {
	int p = 0;
	if (channels == width)
		for (; p + width <= positions; p += width) {
			__m256 c[width];
			transpose(c, planes + p, positions);
			for (int i = 0; i < width; i++)
				_mm256_storeu_ps(block + (p + i) * width, c[i]);
		}
	for (; p < positions; p++)
		for (int c = 0; c < width; c++)
			block[p * width + c] = c < channels ? planes[(int64_t)c * positions + p] : 0;
}

// separate writes the channels of block to planes of dst, channel c to plane to[c].
static void separate(float *dst, const float *block, int channels, int positions, const int32_t *to) {
	int p = 0;
	for (; p + width <= positions; p += width) {
		__m256 rows[width];
		transpose(rows, block + p * width, width);
		for (int c = 0; c < channels; c++)
			_mm256_storeu_ps(dst + (int64_t)to[c] * positions + p, rows[c]);
	}
	for (; p < positions; p++)
		for (int c = 0; c < channels; c++)
			dst[(int64_t)to[c] * positions + p] = block[p * width + c];
}

// value interpolates value k of the taps in all channels of a block. right and down are the steps
// of the taps, in positions.
static inline __m256 value(const float *block, const Taps *t, int k, int right, int down) {
	const float *p = block + (int64_t)t->at[k] * width, *q = p + (int64_t)down * width;
	__m256 x = _mm256_set1_ps(t->fractions[2 * k]), y = _mm256_set1_ps(t->fractions[2 * k + 1]);
	__m256 a = _mm256_loadu_ps(p), b = _mm256_loadu_ps(q);
	a = _mm256_add_ps(a, _mm256_mul_ps(x, _mm256_sub_ps(_mm256_loadu_ps(p + right * width), a)));
	b = _mm256_add_ps(b, _mm256_mul_ps(x, _mm256_sub_ps(_mm256_loadu_ps(q + right * width), b)));
	return _mm256_add_ps(a, _mm256_mul_ps(y, _mm256_sub_ps(b, a)));
}

// total returns the sum of the values of a vector register.
static double total(__m256 v) {
	float x[width];
	_mm256_storeu_ps(x, v);
	double sum = 0;
	for (int i = 0; i < width; i++)
		sum += x[i];
	return sum;
}

// precise reports whether a sum of squares in float is neither so small that terms may have
// vanished, nor too large, nor NaN.
static int precise(double sum) { return sum >= 1e-18 && sum <= 1e37; }

// add_floor adds the sums of |tau^-1 tau z - z|^2 and |z|^2 of a block z to floor. moved is tau z, and
// t holds the taps of tau^-1.
static void add_floor(const float *moved, const float *z, const Taps *t, int right, int down, double floor[2]) {
	for (int from = 0; from < t->n; from += part / width) {
		int end = minimum(t->n, from + part / width);
		__m256 difference = _mm256_setzero_ps(), norm = _mm256_setzero_ps();
		for (int k = from; k < end; k++) {
			__m256 own = _mm256_loadu_ps(z + (int64_t)t->place[k] * width);
			__m256 d = _mm256_sub_ps(value(moved, t, k, right, down), own);
			difference = _mm256_add_ps(difference, _mm256_mul_ps(d, d));
			norm = _mm256_add_ps(norm, _mm256_mul_ps(own, own));
		}
		double d = total(difference), n = total(norm);
		if (!precise(n) || !(d <= 1e37)) {
			d = n = 0;
			for (int k = from; k < end; k++) {
				float restored[width];
				_mm256_storeu_ps(restored, value(moved, t, k, right, down));
				for (int c = 0; c < width; c++) {
					double own = z[(int64_t)t->place[k] * width + c], e = restored[c] - own;
					d += e * e;
					n += own * own;
				}
			}
		}
		floor[0] += d;
		floor[1] += n;
	}
}

void planes_act(float *dst, const float *z, int channels, int positions, const int32_t *to, Taps forward, Taps back, int right, int down, float *scratch, double floor[2]) {
	float *block = scratch, *moved = scratch + (int64_t)positions * width;
	memset(moved, 0, sizeof(float) * positions * width);
	for (int c = 0; c < channels; c += width) {
		int n = minimum(width, channels - c);
		interleave(block, z + (int64_t)c * positions, n, positions);
		for (int k = 0; k < forward.n; k++)
			_mm256_storeu_ps(moved + (int64_t)forward.place[k] * width, value(block, &forward, k, right, down));
		if (floor)
			add_floor(moved, block, &back, right, down, floor);
		separate(dst, moved, n, positions, to + c);
	}
}

// exact_sums returns the sums over the runs of a row, added in double throughout.
static PairSums exact_sums(const float *a, const float *b, Runs runs) {
	PairSums s = {0, 0, 0};
	for (int r = 0; r < runs.n; r++)
		for (int i = runs.ends[2 * r]; i < runs.ends[2 * r + 1]; i++) {
			double x = a[i], y = b[i];
			s.difference += (x - y) * (x - y);
			s.aa += x * x;
			s.bb += y * y;
		}
	return s;
}

PairSums planes_sums(const float *a, const float *b, int rows, int stride, Runs runs) {
	PairSums all = {0, 0, 0};
	for (int row = 0; row < rows; row++, a += stride, b += stride) {
		PairSums s = {0, 0, 0};
		// left: values until the float sums are added to s; vectors: the float sums are not empty
		int exact = 0, left = part, vectors = 0;
		__m256 difference = _mm256_setzero_ps(), aa = difference, bb = difference;
		for (int r = 0; r < runs.n; r++) {
			int i = runs.ends[2 * r], end = runs.ends[2 * r + 1];
			while (i < end) {
				int stop = minimum(end, i + left);
				left -= stop - i;
				for (; i + width <= stop; i += width) {
					__m256 x = _mm256_loadu_ps(a + i), y = _mm256_loadu_ps(b + i), d = _mm256_sub_ps(x, y);
					difference = _mm256_add_ps(difference, _mm256_mul_ps(d, d));
					aa = _mm256_add_ps(aa, _mm256_mul_ps(x, x));
					bb = _mm256_add_ps(bb, _mm256_mul_ps(y, y));
					vectors = 1;
				}
				for (; i < stop; i++) {
					double x = a[i], y = b[i];
					s.difference += (x - y) * (x - y);
					s.aa += x * x;
					s.bb += y * y;
				}
				if (left > 0 && r + 1 < runs.n)
					continue;
				double d = total(difference), x = total(aa), y = total(bb);
				exact |= vectors && !precise(x + y);
				s.difference += d;
				s.aa += x;
				s.bb += y;
				difference = aa = bb = _mm256_setzero_ps();
				left = part;
				vectors = 0;
			}
		}
		if (exact) // a sum in float has overflowed, or terms of it have vanished
			s = exact_sums(a, b, runs);
		all.difference += s.difference;
		all.aa += s.aa;
		all.bb += s.bb;
	}
	return all;
}

double planes_dot(const float *a, const float *b, int rows, int stride, Runs runs) {
	double all = 0;
	for (int row = 0; row < rows; row++, a += stride, b += stride) {
		__m256 sum = _mm256_setzero_ps();
		int left = part; // values until sum is added to all
		for (int r = 0; r < runs.n; r++) {
			int i = runs.ends[2 * r], end = runs.ends[2 * r + 1];
			while (i < end) {
				int stop = minimum(end, i + left);
				left -= stop - i;
				for (; i + width <= stop; i += width)
					sum = _mm256_add_ps(sum, _mm256_mul_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i)));
				for (; i < stop; i++)
					all += (double)a[i] * b[i];
				if (left == 0) {
					all += total(sum);
					sum = _mm256_setzero_ps();
					left = part;
				}
			}
		}
		all += total(sum);
	}
	return all;
}

#ifdef __clang__
PRAGMA(clang attribute pop)
#else
PRAGMA(GCC pop_options)
#endif
