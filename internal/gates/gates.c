//go:build cgo && amd64

#include "gates.h"

#include <immintrin.h>
#include <string.h>

#define W 8

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,popcnt"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,popcnt")
#endif

// By mask: the places of its bits, lowest first.
static uint8_t places[256][W];

static void list_places(void) {
	for (int mask = 0; mask < 256; mask++)
		for (int bit = 0, n = 0; bit < W; bit++)
			if (mask >> bit & 1)
				places[mask][n++] = (uint8_t)bit;
}

extent gates_pass(uint32_t *out, const float *values, extent rows, extent cols, extent stride, float sign, const float *gate) {
	uint32_t *at = out;
	__m256 times = _mm256_set1_ps(sign);
	for (extent i = 0; i < rows; i++) {
		const float *v = values + i * stride;
		extent j = 0;
		for (; j + W <= cols; j += W) {
			__m256 pass = _mm256_cmp_ps(_mm256_mul_ps(times, _mm256_loadu_ps(v + j)), _mm256_loadu_ps(gate + j), _CMP_GE_OQ);
			unsigned mask = (unsigned)_mm256_movemask_ps(pass);
			__m256i hits = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)places[mask]));
			_mm256_storeu_si256((__m256i *)at, _mm256_add_epi32(hits, _mm256_set1_epi32((int)(i << 16 | j)))); // those beyond the hits are overwritten
			at += __builtin_popcount(mask);
		}
		for (; j < cols; j++)
			if (sign * v[j] >= gate[j])
				*at++ = (uint32_t)(i << 16 | j);
	}
	return at - out;
}

void gates_count(int32_t *sum, const float *values, extent rows, extent cols, extent stride, float sign, const float *gate) {
	for (extent i = 0; i < rows; i++) {
		const float *v = values + i * stride;
		for (extent j = 0; j < cols; j++)
			sum[j] += sign * v[j] >= gate[j];
	}
}

int gates_finite(const float *values, extent n) {
	uint32_t bad = 0;
	const uint32_t *bits = (const uint32_t *)values;
	for (extent i = 0; i < n; i++)
		bad |= (bits[i] & 0x7f800000) + 0x00800000; // carries where the exponent is all ones
	return !(bad >> 31);
}

// A bitonic network (Batcher 1968) on 32 values in four vectors. In a step (k, j) values j apart are compared; those at places with bit k fall.
#define HIGH(a, k, j, lane) (((((lane) & (j)) != 0) ^ (((8 * (a) + (lane)) & (k)) != 0)) << (lane))
#define HIGHS(a, k, j) (HIGH(a, k, j, 0) | HIGH(a, k, j, 1) | HIGH(a, k, j, 2) | HIGH(a, k, j, 3) | HIGH(a, k, j, 4) | HIGH(a, k, j, 5) | HIGH(a, k, j, 6) | HIGH(a, k, j, 7))
#define OTHER1(x) _mm256_permute_ps(x, 0xb1)
#define OTHER2(x) _mm256_permute_ps(x, 0x4e)
#define OTHER4(x) _mm256_permute2f128_ps(x, x, 1)
#define INSIDE(a, k, j) \
	do { \
		__m256 other = OTHER##j(r[a]); \
		r[a] = _mm256_blend_ps(_mm256_min_ps(r[a], other), _mm256_max_ps(r[a], other), HIGHS(a, k, j)); \
	} while (0)
#define ALL(k, j) \
	INSIDE(0, k, j); \
	INSIDE(1, k, j); \
	INSIDE(2, k, j); \
	INSIDE(3, k, j)
#define ACROSS(low, high) \
	do { \
		__m256 least = _mm256_min_ps(r[low], r[high]); \
		r[high] = _mm256_max_ps(r[low], r[high]); \
		r[low] = least; \
	} while (0)

static void sort32(float *v) {
	__m256 r[4];
	for (int a = 0; a < 4; a++)
		r[a] = _mm256_loadu_ps(v + W * a);
	ALL(2, 1);
	ALL(4, 2);
	ALL(4, 1);
	ALL(8, 4);
	ALL(8, 2);
	ALL(8, 1);
	ACROSS(0, 1);
	ACROSS(3, 2);
	ALL(16, 4);
	ALL(16, 2);
	ALL(16, 1);
	ACROSS(0, 2);
	ACROSS(1, 3);
	ACROSS(0, 1);
	ACROSS(2, 3);
	ALL(32, 4);
	ALL(32, 2);
	ALL(32, 1);
	for (int a = 0; a < 4; a++)
		_mm256_storeu_ps(v + W * a, r[a]);
}

static uint64_t mix(uint64_t a, uint64_t b) {
	uint64_t x = a * 0x9e3779b97f4a7c15 + (b + 1) * 0xd1b54a32d192ed03;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

enum { bulk = 32, half = bulk / 2 };

// Thins the lower half of the 32 values of a full level 0.
static void move_up(float *items, uint16_t *fill, uint16_t *turn, int step, uint64_t draw) {
	extent of = (extent)1 << step, at = mix(draw, *turn / 2) & (of - 1);
	if (*turn & 1)
		at = of - 1 - at;
	++*turn;
	sort32(items);
	float *above = items + bulk + fill[1];
	for (extent i = at; i < half; i += of)
		*above++ = items[i];
	fill[1] += half >> step;
	memcpy(items, items + half, half * sizeof *items);
	fill[0] = half;
}

extent gates_enter(const uint32_t *hits, extent from, extent n, const float *values, extent stride, float sign,
	const float *gate, float *items, extent size, uint16_t *fill, uint16_t *turns, extent levels, extent room, extent next, int step, uint64_t draw,
	const float *last, extent apart, const uint8_t *ranked, uint32_t *strong, extent *strongs) {
	extent found = *strongs;
	for (extent h = from; h < n; h++) {
		extent i = hits[h] >> 16, j = hits[h] & 0xffff;
		float v = sign * values[i * stride + j];
		if (v >= last[j * apart] && ranked[i])
			strong[found++] = hits[h];
		if (!(v > gate[j]))
			continue;
		uint16_t *full = fill + j * levels;
		float *own = items + j * size;
		own[*full] = v;
		if (++*full < room)
			continue;
		if (room != bulk || levels == 1 || full[1] + (half >> step) > next) {
			*strongs = found;
			return h;
		}
		move_up(own, full, turns + j * levels, step, draw + (uint64_t)(j * levels));
	}
	*strongs = found;
	return n;
}

#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

int gates_available(void) {
	list_places();
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt");
}
