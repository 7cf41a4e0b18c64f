//go:build amd64

#include "adam.h"

#include <immintrin.h>
#include <math.h>

// update_rest updates the elements that are left after those that fill vectors of 8 numbers. p, g,
// m and v are the parameter, its gradient and its moments. adam.h has the formulas; rates are the
// step size, the term that avoids division by 0, and the factor of weight decay.
static void update_rest(const AdamConstants *c, const AdamArrays *a, size_t from, size_t to) {
	for (size_t i = from; i < to; i++) {
		const float p = a->p[i], g = a->g[i];
		const float m = c->beta1 * a->m[i] + g, v = c->beta2 * a->v[i] + g * g;
		a->next_m[i] = m;
		a->next_v[i] = v;
		a->next_p[i] = a->rates[2] * p - a->rates[0] * (m / (sqrtf(v) + a->rates[1]));
	}
}

__attribute__((target("avx2,fma"))) void adam_update(const AdamConstants *c, const AdamArrays *a, size_t from, size_t to) {
	const __m256 step = _mm256_set1_ps(a->rates[0]), epsilon = _mm256_set1_ps(a->rates[1]), decay = _mm256_set1_ps(a->rates[2]);
	const __m256 beta1 = _mm256_set1_ps(c->beta1), beta2 = _mm256_set1_ps(c->beta2);
	for (; from + 8 <= to; from += 8) {
		const __m256 p = _mm256_loadu_ps(a->p + from), g = _mm256_loadu_ps(a->g + from);
		const __m256 m = _mm256_fmadd_ps(beta1, _mm256_loadu_ps(a->m + from), g);
		const __m256 v = _mm256_fmadd_ps(beta2, _mm256_loadu_ps(a->v + from), _mm256_mul_ps(g, g));
		_mm256_storeu_ps(a->next_m + from, m);
		_mm256_storeu_ps(a->next_v + from, v);
		const __m256 direction = _mm256_div_ps(m, _mm256_add_ps(_mm256_sqrt_ps(v), epsilon));
		_mm256_storeu_ps(a->next_p + from, _mm256_fnmadd_ps(step, direction, _mm256_mul_ps(decay, p)));
	}
	update_rest(c, a, from, to);
}
