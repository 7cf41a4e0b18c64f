#include "adam.h"

#include <math.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "no-math-errno") // so that square roots are taken several at a time
#endif

static void adam_plain(const AdamConstants *c, const AdamArrays *a, size_t from, size_t to) {
	const float step = a->rates[0], epsilon = a->rates[1], keep = a->rates[2];
	for (size_t i = from; i < to; i++) {
		const float p = a->p[i], g = a->g[i];
		const float m = c->beta1 * a->m[i] + g, v = c->beta2 * a->v[i] + g * g;
		a->next_m[i] = m;
		a->next_v[i] = v;
		a->next_p[i] = keep * p - step * (m / (sqrtf(v) + epsilon));
	}
}

#if defined(__x86_64__)
#include <immintrin.h>

#define WIDE __attribute__((target("avx2,fma")))
enum { LANES = 8 };

WIDE static void adam_wide(const AdamConstants *c, const AdamArrays *a, size_t from, size_t to) {
	const __m256 step = _mm256_set1_ps(a->rates[0]), epsilon = _mm256_set1_ps(a->rates[1]), keep = _mm256_set1_ps(a->rates[2]);
	const __m256 beta1 = _mm256_set1_ps(c->beta1), beta2 = _mm256_set1_ps(c->beta2);
	size_t i = from;
	for (; i + LANES <= to; i += LANES) {
		const __m256 p = _mm256_loadu_ps(a->p + i), g = _mm256_loadu_ps(a->g + i);
		const __m256 m = _mm256_fmadd_ps(beta1, _mm256_loadu_ps(a->m + i), g);
		const __m256 v = _mm256_fmadd_ps(beta2, _mm256_loadu_ps(a->v + i), _mm256_mul_ps(g, g));
		_mm256_storeu_ps(a->next_m + i, m);
		_mm256_storeu_ps(a->next_v + i, v);
		const __m256 move = _mm256_div_ps(m, _mm256_add_ps(_mm256_sqrt_ps(v), epsilon));
		_mm256_storeu_ps(a->next_p + i, _mm256_fnmadd_ps(step, move, _mm256_mul_ps(keep, p)));
	}
	adam_plain(c, a, i, to);
}

AdamUpdate adam_update(void) {
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? adam_wide : adam_plain;
}
#else
AdamUpdate adam_update(void) { return adam_plain; }
#endif
