//go:build cgo && amd64

#include "gram.h"

#define DEPTH (1536 / W) // rows of five panels, three of them multiplied again and again, fit into 32 KiB of first-level cache
#define NV 3             // panels that one is multiplied with at once
#define SIDE 4           // panels that are laid out side by side: more would drive each other out of the cache
#define AHEAD 3          // rows of sums that are called for before their turn

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define W 8
#define MR 4 // MR x NV sums, NV factors and another fill the 16 registers
#define NAME(x) x##_avx2
#include "kernel.h"
#undef W
#undef MR
#undef NAME
#ifdef __clang__
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx2,fma"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx2,fma")
#endif
#define W 16
#define MR 8 // of 32 registers
#define NAME(x) x##_avx512
#include "kernel.h"
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

int gram_lanes(void) {
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
		return 0;
	return __builtin_cpu_supports("avx512f") ? 16 : 8;
}

void gram_pack(int lanes, float *dst, extent panels, extent first, const float *rows, extent stride, const extent *order, extent n, extent cols, const float *shift) {
	(lanes == 16 ? pack_avx512 : pack_avx2)(dst, panels, first, rows, stride, order, n, cols, shift);
}

void gram_sum(int lanes, double *sum, const float *rows, extent n, extent cols) {
	(lanes == 16 ? sum_avx512 : sum_avx2)(sum, rows, n, cols);
}

void gram_shift(int lanes, float *rows, extent n, extent cols, const float *shift) {
	(lanes == 16 ? shift_avx512 : shift_avx2)(rows, n, cols, shift);
}

// Where the sums of row i from column j on begin.
static extent row_at(extent i, extent j, extent cols, int triangle) {
	return (triangle ? i * (2 * cols - i - 1) / 2 : i * cols) + j;
}

// Calls for the n bytes from p on, which are written soon: a row of sums is far from the one before it, and the processor does
// not foresee that.
static void call_for(const void *p, extent n) {
	for (extent at = 0; at < n; at += 64)
		__builtin_prefetch((const char *)p + at, 1);
}

void gram_add_tile(int lanes, const float *products, extent stride, extent top, extent bottom, extent left, extent right, extent cols, int triangle,
	double *wide, const double *wide_u, const double *wide_v, float *narrow, const double *narrow_u, const double *narrow_v) {
	for (extent i = top; i < bottom; i++) {
		extent from = triangle && i > left ? i : left;
		if (from >= right)
			break;
		extent at = row_at(i, from, cols, triangle), later = row_at(i + AHEAD, left, cols, triangle);
		if (wide && i + AHEAD < bottom)
			call_for(wide + later, (right - left) * sizeof *wide);
		if (narrow && i + AHEAD < bottom)
			call_for(narrow + later, (right - left) * sizeof *narrow);
		const float *row = products + (i - top) * stride + from - left;
		if (wide)
			(lanes == 16 ? add_double_avx512 : add_double_avx2)(wide + at, row, wide_u[i], wide_v + from, right - from);
		if (narrow)
			(lanes == 16 ? add_single_avx512 : add_single_avx2)(narrow + at, row, narrow_u[i], narrow_v + from, right - from);
	}
}

void gram_add(int lanes, const float *a, extent a_panels, extent i0, extent i1, const float *b, extent b_panels, extent j0, extent j1, extent n,
	extent rows, extent cols, int triangle, float *c, double *wide, const double *wide_u, const double *wide_v, float *narrow, const double *narrow_u, const double *narrow_v) {
	extent width = (j1 - j0) * lanes, left = j0 * lanes, right = j1 * lanes < cols ? j1 * lanes : cols;
	extent top = i0 * lanes, bottom = i1 * lanes < rows ? i1 * lanes : rows;
	(lanes == 16 ? multiply_avx512 : multiply_avx2)(a, a_panels, i0, i1, b, b_panels, j0, j1, n, c, width, triangle);
	gram_add_tile(lanes, c, width, top, bottom, left, right, cols, triangle, wide, wide_u, wide_v, narrow, narrow_u, narrow_v);
}
