//go:build amd64 && cgo

// Kernels with AVX2 and AVX-512 for the sums of pairSums. Those of sums_of add in double, those of
// fast_sums_of add the terms of a block in float and the blocks in double. See native.go.

#include "sums.h"

#include <immintrin.h>
#include <math.h>

int sums_level(void) {
	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f"))
		return 2;
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

// rest adds the components from i on.
static Sums rest(Sums s, const float *a, const float *b, int64_t i, int64_t n) {
	for (; i < n; i++) {
		double x = a[i], y = b[i], d = x - y;
		s.dot += x * y;
		s.aa += x * x;
		s.bb += y * y;
		s.abs += fabs(d);
		s.sqr += d * d;
	}
	return s;
}

__attribute__((target("avx2,fma"))) static double add4(__m256d v) {
	__m128d half = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
	return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
}

__attribute__((target("avx2,fma"))) static Sums sums_avx2(const float *a, const float *b, int64_t n) {
	enum { width = 4, parts = 2 };
	const __m256d sign = _mm256_set1_pd(-0.0);
	__m256d dot[parts], aa[parts], bb[parts], abs[parts], sqr[parts];
	for (int k = 0; k < parts; k++)
		dot[k] = aa[k] = bb[k] = abs[k] = sqr[k] = _mm256_setzero_pd();
	int64_t i = 0;
	for (; i + width * parts <= n; i += width * parts)
		for (int k = 0; k < parts; k++) {
			__m256d x = _mm256_cvtps_pd(_mm_loadu_ps(a + i + width * k));
			__m256d y = _mm256_cvtps_pd(_mm_loadu_ps(b + i + width * k));
			__m256d d = _mm256_sub_pd(x, y);
			dot[k] = _mm256_fmadd_pd(x, y, dot[k]);
			aa[k] = _mm256_fmadd_pd(x, x, aa[k]);
			bb[k] = _mm256_fmadd_pd(y, y, bb[k]);
			abs[k] = _mm256_add_pd(abs[k], _mm256_andnot_pd(sign, d));
			sqr[k] = _mm256_fmadd_pd(d, d, sqr[k]);
		}
	Sums s = {
		add4(_mm256_add_pd(dot[0], dot[1])), add4(_mm256_add_pd(aa[0], aa[1])), add4(_mm256_add_pd(bb[0], bb[1])),
		add4(_mm256_add_pd(abs[0], abs[1])), add4(_mm256_add_pd(sqr[0], sqr[1])),
	};
	return rest(s, a, b, i, n);
}

__attribute__((target("avx512f"))) static Sums sums_avx512(const float *a, const float *b, int64_t n) {
	enum { width = 8, parts = 2 };
	__m512d dot[parts], aa[parts], bb[parts], abs[parts], sqr[parts];
	for (int k = 0; k < parts; k++)
		dot[k] = aa[k] = bb[k] = abs[k] = sqr[k] = _mm512_setzero_pd();
	int64_t i = 0;
	for (; i + width * parts <= n; i += width * parts)
		for (int k = 0; k < parts; k++) {
			__m512d x = _mm512_cvtps_pd(_mm256_loadu_ps(a + i + width * k));
			__m512d y = _mm512_cvtps_pd(_mm256_loadu_ps(b + i + width * k));
			__m512d d = _mm512_sub_pd(x, y);
			dot[k] = _mm512_fmadd_pd(x, y, dot[k]);
			aa[k] = _mm512_fmadd_pd(x, x, aa[k]);
			bb[k] = _mm512_fmadd_pd(y, y, bb[k]);
			abs[k] = _mm512_add_pd(abs[k], _mm512_abs_pd(d));
			sqr[k] = _mm512_fmadd_pd(d, d, sqr[k]);
		}
	Sums s = {
		_mm512_reduce_add_pd(_mm512_add_pd(dot[0], dot[1])), _mm512_reduce_add_pd(_mm512_add_pd(aa[0], aa[1])),
		_mm512_reduce_add_pd(_mm512_add_pd(bb[0], bb[1])), _mm512_reduce_add_pd(_mm512_add_pd(abs[0], abs[1])),
		_mm512_reduce_add_pd(_mm512_add_pd(sqr[0], sqr[1])),
	};
	return rest(s, a, b, i, n);
}

enum { steps = 16 }; // terms of a float sum

__attribute__((target("avx2,fma"))) static __m256d add_block_avx2(__m256d to, __m256 a, __m256 b) {
	__m256 v = _mm256_add_ps(a, b);
	to = _mm256_add_pd(to, _mm256_cvtps_pd(_mm256_castps256_ps128(v)));
	return _mm256_add_pd(to, _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)));
}

__attribute__((target("avx2,fma"))) static Sums fast_avx2(const float *a, const float *b, int64_t n) {
	enum { width = 8, parts = 2 };
	const __m256 sign = _mm256_set1_ps(-0.0f);
	__m256d dots = _mm256_setzero_pd(), aas = dots, bbs = dots, abss = dots, sqrs = dots;
	int64_t i = 0;
	for (; i + steps * width * parts <= n; i += steps * width * parts) {
		__m256 dot[parts], aa[parts], bb[parts], abs[parts], sqr[parts];
		for (int k = 0; k < parts; k++)
			dot[k] = aa[k] = bb[k] = abs[k] = sqr[k] = _mm256_setzero_ps();
		for (int s = 0; s < steps; s++)
			for (int k = 0; k < parts; k++) {
				__m256 x = _mm256_loadu_ps(a + i + width * (parts * s + k));
				__m256 y = _mm256_loadu_ps(b + i + width * (parts * s + k));
				__m256 d = _mm256_sub_ps(x, y);
				dot[k] = _mm256_fmadd_ps(x, y, dot[k]);
				aa[k] = _mm256_fmadd_ps(x, x, aa[k]);
				bb[k] = _mm256_fmadd_ps(y, y, bb[k]);
				abs[k] = _mm256_add_ps(abs[k], _mm256_andnot_ps(sign, d));
				sqr[k] = _mm256_fmadd_ps(d, d, sqr[k]);
			}
		dots = add_block_avx2(dots, dot[0], dot[1]);
		aas = add_block_avx2(aas, aa[0], aa[1]);
		bbs = add_block_avx2(bbs, bb[0], bb[1]);
		abss = add_block_avx2(abss, abs[0], abs[1]);
		sqrs = add_block_avx2(sqrs, sqr[0], sqr[1]);
	}
	Sums s = {add4(dots), add4(aas), add4(bbs), add4(abss), add4(sqrs)};
	return rest(s, a, b, i, n);
}

__attribute__((target("avx512f"))) static __m512d add_block_avx512(__m512d to, __m512 a, __m512 b) {
	__m512 v = _mm512_add_ps(a, b);
	__m256 high = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
	to = _mm512_add_pd(to, _mm512_cvtps_pd(_mm512_castps512_ps256(v)));
	return _mm512_add_pd(to, _mm512_cvtps_pd(high));
}

__attribute__((target("avx512f"))) static Sums fast_avx512(const float *a, const float *b, int64_t n) {
	enum { width = 16, parts = 2 };
	__m512d dots = _mm512_setzero_pd(), aas = dots, bbs = dots, abss = dots, sqrs = dots;
	int64_t i = 0;
	for (; i + steps * width * parts <= n; i += steps * width * parts) {
		__m512 dot[parts], aa[parts], bb[parts], abs[parts], sqr[parts];
		for (int k = 0; k < parts; k++)
			dot[k] = aa[k] = bb[k] = abs[k] = sqr[k] = _mm512_setzero_ps();
		for (int s = 0; s < steps; s++)
			for (int k = 0; k < parts; k++) {
				__m512 x = _mm512_loadu_ps(a + i + width * (parts * s + k));
				__m512 y = _mm512_loadu_ps(b + i + width * (parts * s + k));
				__m512 d = _mm512_sub_ps(x, y);
				dot[k] = _mm512_fmadd_ps(x, y, dot[k]);
				aa[k] = _mm512_fmadd_ps(x, x, aa[k]);
				bb[k] = _mm512_fmadd_ps(y, y, bb[k]);
				abs[k] = _mm512_add_ps(abs[k], _mm512_abs_ps(d));
				sqr[k] = _mm512_fmadd_ps(d, d, sqr[k]);
			}
		dots = add_block_avx512(dots, dot[0], dot[1]);
		aas = add_block_avx512(aas, aa[0], aa[1]);
		bbs = add_block_avx512(bbs, bb[0], bb[1]);
		abss = add_block_avx512(abss, abs[0], abs[1]);
		sqrs = add_block_avx512(sqrs, sqr[0], sqr[1]);
	}
	Sums s = {
		_mm512_reduce_add_pd(dots), _mm512_reduce_add_pd(aas), _mm512_reduce_add_pd(bbs), _mm512_reduce_add_pd(abss),
		_mm512_reduce_add_pd(sqrs),
	};
	return rest(s, a, b, i, n);
}

Sums sums_of(const float *a, const float *b, int64_t n, int level) {
	return level == 2 ? sums_avx512(a, b, n) : sums_avx2(a, b, n);
}

Sums fast_sums_of(const float *a, const float *b, int64_t n, int level) {
	return level == 2 ? fast_avx512(a, b, n) : fast_avx2(a, b, n);
}
