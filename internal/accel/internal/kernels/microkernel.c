//go:build amd64

#include "microkernel.h"

#include <immintrin.h>

#define PRAGMA(x) _Pragma(#x)
#define UNROLL(n) PRAGMA(GCC unroll n) // of the loop that follows; 1: not unrolled
#define INLINE static inline __attribute__((always_inline))

// TARGET and TARGET_END enclose functions for one instruction set.
#ifdef __clang__
#define TARGET(features) PRAGMA(clang attribute push(__attribute__((target(features))), apply_to = function))
#define TARGET_END PRAGMA(clang attribute pop)
#else
#define TARGET(features) PRAGMA(GCC push_options) PRAGMA(GCC target(features))
#define TARGET_END PRAGMA(GCC pop_options)
#endif

// The included files define the kernels for vectors of W float32, with names made by NAME.
TARGET("avx2,fma")
#define W 8
#define NAME(x) x##_avx2
#include "gemm_kernel.h"
#include "winograd_kernel.h"

// transpose8 transposes 8 x 8 elements: it interleaves pairs of rows, then pairs of these, and then
// exchanges halves of vectors.
static inline void transpose8(const float *src, size_t src_stride, float *dst, size_t dst_stride) {
	__m256 row[8], pair[8];
	for (int i = 0; i < 8; i++)
		row[i] = _mm256_loadu_ps(src + i * src_stride);
	for (int i = 0; i < 8; i += 2) {
		pair[i] = _mm256_unpacklo_ps(row[i], row[i + 1]);
		pair[i + 1] = _mm256_unpackhi_ps(row[i], row[i + 1]);
	}
	for (int i = 0; i < 8; i += 4)
		for (int k = 0; k < 2; k++) {
			row[i + 2 * k] = _mm256_shuffle_ps(pair[i + k], pair[i + k + 2], _MM_SHUFFLE(1, 0, 1, 0));
			row[i + 2 * k + 1] = _mm256_shuffle_ps(pair[i + k], pair[i + k + 2], _MM_SHUFFLE(3, 2, 3, 2));
		}
	for (int i = 0; i < 4; i++) { // 0x20: the lower halves of two rows; 0x31: the upper halves
		_mm256_storeu_ps(dst + i * dst_stride, _mm256_permute2f128_ps(row[i], row[i + 4], 0x20));
		_mm256_storeu_ps(dst + (i + 4) * dst_stride, _mm256_permute2f128_ps(row[i], row[i + 4], 0x31));
	}
}

// transpose_rest transposes rows and columns that do not fill blocks of 8 x 8.
static void transpose_rest(const float *src, size_t src_stride, float *dst, size_t dst_stride, size_t rows, size_t columns) {
	for (size_t c = 0; c < columns; c++)
		for (size_t r = 0; r < rows; r++)
			dst[c * dst_stride + r] = src[r * src_stride + c];
}

void transpose(const float *src, size_t src_stride, float *dst, size_t dst_stride, size_t rows, size_t columns) {
	const size_t full = columns & ~(size_t)7;
	size_t r = 0;
	for (; r + 8 <= rows; r += 8, src += 8 * src_stride, dst += 8) {
		for (size_t c = 0; c < full; c += 8)
			transpose8(src + c, src_stride, dst + c * dst_stride, dst_stride);
		transpose_rest(src + full, src_stride, dst + full * dst_stride, dst_stride, 8, columns - full);
	}
	transpose_rest(src, src_stride, dst, dst_stride, rows - r, columns);
}
#undef W
#undef NAME
TARGET_END

TARGET("avx512f,avx2,fma")
#define W 16
#define NAME(x) x##_avx512
#include "gemm_kernel.h"
#include "winograd_kernel.h"
TARGET_END

// A vector has 16 or 8 floats; 0: this processor has neither. lanes is the largest number to use, 0
// for the most that the processor has. microkernel.h says when 8 are faster.
static int width;

void set_vector_width(int floats) { width = floats; }

int vector_width(void) { return width; }

const MicroKernels *micro_kernels(int lanes) { return lanes == 8 || vector_width() == 8 ? &kernels_avx2 : &kernels_avx512; }

const MicroKernels *micro_kernels_for(int lanes, size_t rows) { return micro_kernels(lanes == 0 && ceil_div(rows, 16) % 2 == 1 ? 8 : lanes); }
