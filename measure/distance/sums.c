//go:build amd64 && cgo

// Kernels with AVX2 and AVX-512 for the sums of pairSums. Everything is added in double. See native.go.

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

Sums sums_of(const float *a, const float *b, int64_t n, int level) {
	return level == 2 ? sums_avx512(a, b, n) : sums_avx2(a, b, n);
}
