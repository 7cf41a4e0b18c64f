#include "tile.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

// What tile_of gives for one kind of processor.
#define TILE static const Tile NAME(tile) = {2 * W, NAME(multiply), NAME(patch), NAME(weights), NAME(result), NAME(spread), NAME(taps), NAME(product), {NAME(read2), NAME(weights), NAME(write2)}, {NAME(read4), NAME(weights4), NAME(write4)}, NAME(finish), NAME(add)};

#define W 8
#define NAME(x) x##_plain8
#include "tile_kernel.h"
#include "winograd_kernel.h"
TILE
#undef W
#undef NAME
#define W 16
#define NAME(x) x##_plain16
#include "tile_kernel.h"
#include "winograd_kernel.h"
TILE
#undef W
#undef NAME

const Tile *tile_for(int lanes, size_t rows) { return tile_of(lanes == 0 && (rows + 15) / 16 % 2 == 1 ? 8 : lanes); }

// corner transposes as many rows and columns as are left over.
static void corner(const float *from, size_t stride, float *to, size_t apart, size_t rows, size_t columns) {
	for (size_t c = 0; c < columns; c++)
		for (size_t r = 0; r < rows; r++)
			to[c * apart + r] = from[r * stride + c];
}

#if defined(__x86_64__)
#include <immintrin.h>

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define W 8
#define NAME(x) x##_avx2
#include "tile_kernel.h"
#include "winograd_kernel.h"
TILE
#undef W
#undef NAME

// square transposes 8 x 8: pairs of rows, then fours, then halves.
static inline void square(const float *from, size_t stride, float *to, size_t apart) {
	__m256 row[8], pair[8];
	for (int i = 0; i < 8; i++)
		row[i] = _mm256_loadu_ps(from + i * stride);
	for (int i = 0; i < 8; i += 2) {
		pair[i] = _mm256_unpacklo_ps(row[i], row[i + 1]);
		pair[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
	}
	for (int i = 0; i < 8; i += 4)
		for (int k = 0; k < 2; k++) {
			row[i + 2 * k] = _mm256_shuffle_ps(pair[i + k], pair[i + k + 2], _MM_SHUFFLE(1, 0, 1, 0));
			row[i + 2 * k + 1] = _mm256_shuffle_ps(pair[i + k], pair[i + k + 2], _MM_SHUFFLE(3, 2, 3, 2));
		}
	for (int i = 0; i < 4; i++) {
		_mm256_storeu_ps(to + i * apart, _mm256_permute2f128_ps(row[i], row[i + 4], 0x20));
		_mm256_storeu_ps(to + (i + 4) * apart, _mm256_permute2f128_ps(row[i], row[i + 4], 0x31));
	}
}

static void transpose_avx2(const float *from, size_t stride, float *to, size_t apart, size_t rows, size_t columns) {
	const size_t full = columns & ~(size_t)7;
	size_t r = 0;
	for (; r + 8 <= rows; r += 8, from += 8 * stride, to += 8) {
		for (size_t c = 0; c < full; c += 8)
			square(from + c, stride, to + c * apart, apart);
		corner(from + full, stride, to + full * apart, apart, 8, columns - full);
	}
	corner(from, stride, to, apart, rows - r, columns);
}
#ifdef __clang__
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx2,fma"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx2,fma")
#endif
#define W 16
#define NAME(x) x##_avx512
#include "tile_kernel.h"
#include "winograd_kernel.h"
TILE
#undef W
#undef NAME
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

int tile_width(void) {
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
		return 0;
	return __builtin_cpu_supports("avx512f") ? 16 : 8;
}

const Tile *tile_of(int lanes) {
	const int width = tile_width();
	if (lanes == 16 || (lanes == 0 && width == 16))
		return width == 16 ? &tile_avx512 : &tile_plain16;
	return width > 0 ? &tile_avx2 : &tile_plain8;
}

void transpose(const float *from, size_t stride, float *to, size_t apart, size_t rows, size_t columns) {
	(tile_width() > 0 ? transpose_avx2 : corner)(from, stride, to, apart, rows, columns);
}
#else
int tile_width(void) { return 0; }

const Tile *tile_of(int lanes) { return lanes == 16 ? &tile_plain16 : &tile_plain8; }

void transpose(const float *from, size_t stride, float *to, size_t apart, size_t rows, size_t columns) {
	corner(from, stride, to, apart, rows, columns);
}
#endif
