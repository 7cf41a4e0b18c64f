//go:build amd64 && cgo

// Sums over the components of pairs of vectors (see Sums), compiled for AVX2 and for AVX-512.
// avx.go calls them.

#include "sums.h"

#include <math.h>

// A lane (an element of a SIMD register) adds at most `steps` values in float, and is then added to
// a sum in double. Three rows (p, a and b of Sums) are read in turns, a chunk of each, so that
// chunks stay in the L1 cache. Meanwhile the chunks that are read next are fetched into the L2
// cache: by itself the processor fetches too late, since a chunk is only two pages long.
// second_cache is the argument of __builtin_prefetch that means L2.
enum { lanes = 16, steps = 16, chunk = 2048, second_cache = 2 };

// Compilers turn loops over lanes into vector operations.
#define EACH_LANE for (int k = 0; k < lanes; k++)

// add_chunk adds the sums over n components of p, a and b to s. The chunks of a and b that are read
// next are `next` components further.
static inline __attribute__((always_inline)) void add_chunk(Sums *s, const float *p, const float *a, const float *b, int64_t n, int64_t next) {
	double all_aa[lanes] = {0}, all_bb[lanes] = {0}, all_abs[lanes] = {0}, all_sqr[lanes] = {0}, all_next_abs[lanes] = {0}, all_next_sqr[lanes] = {0};
	int64_t i = 0;
	while (i + lanes <= n) {
		float aa[lanes] = {0}, bb[lanes] = {0}, abs[lanes] = {0}, sqr[lanes] = {0}, next_abs[lanes] = {0}, next_sqr[lanes] = {0};
		int64_t end = i + lanes * steps < n ? i + lanes * steps : n;
		for (; i + lanes <= end; i += lanes) {
			__builtin_prefetch(a + next + i, 0, second_cache);
			__builtin_prefetch(b + next + i, 0, second_cache);
			EACH_LANE {
				float x = a[i + k], y = b[i + k], d = x - y, e = p[i + k] - y;
				aa[k] = fmaf(x, x, aa[k]);
				bb[k] = fmaf(y, y, bb[k]);
				abs[k] += fabsf(d);
				sqr[k] = fmaf(d, d, sqr[k]);
				next_abs[k] += fabsf(e);
				next_sqr[k] = fmaf(e, e, next_sqr[k]);
			}
		}
		EACH_LANE {
			all_aa[k] += aa[k];
			all_bb[k] += bb[k];
			all_abs[k] += abs[k];
			all_sqr[k] += sqr[k];
			all_next_abs[k] += next_abs[k];
			all_next_sqr[k] += next_sqr[k];
		}
	}
	for (int k = 0; i < n; i++, k++) {
		double x = a[i], y = b[i], d = x - y, e = p[i] - y;
		all_aa[k] += x * x;
		all_bb[k] += y * y;
		all_abs[k] += fabs(d);
		all_sqr[k] += d * d;
		all_next_abs[k] += fabs(e);
		all_next_sqr[k] += e * e;
	}
	EACH_LANE {
		s->aa += all_aa[k];
		s->bb += all_bb[k];
		s->abs += all_abs[k];
		s->sqr += all_sqr[k];
		s->next_abs += all_next_abs[k];
		s->next_sqr += all_next_sqr[k];
	}
}

typedef void Add(Sums *s, const float *p, const float *a, const float *b, int64_t n, int64_t next);

__attribute__((target("avx2,fma"), noinline)) static void add_avx2(Sums *s, const float *p, const float *a, const float *b, int64_t n, int64_t next) { add_chunk(s, p, a, b, n, next); }

#ifdef __clang__ // which ignores the whole attribute if it does not know a part of it
#define AVX512 "avx512f"
#else
#define AVX512 "avx512f,prefer-vector-width=512"
#endif

__attribute__((target(AVX512), noinline)) static void add_avx512(Sums *s, const float *p, const float *a, const float *b, int64_t n, int64_t next) { add_chunk(s, p, a, b, n, next); }

void sums_of_rows(Sums *out, const float *previous, const float *a, const float *b, int64_t rows, int64_t n, int level) {
	Add *add = level == 2 ? add_avx512 : add_avx2;
	for (int64_t at = 0; at < n; at += chunk) {
		int64_t m = at + chunk < n ? chunk : n - at;
		if (previous)
			add(&out[rows], previous + at, previous + at, b + at, m, chunk);
		for (int64_t r = 0; r < rows; r++) {
			const float *x = a + r * n + at;
			int64_t next = r + 1 < rows ? n : chunk - r * n;
			add(&out[r], r > 0 ? x - n : x, x, b + r * n + at, m, next);
		}
	}
}
