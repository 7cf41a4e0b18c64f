// The transforms of one kind of processor: tile.c includes this after tile_kernel.h. Numbers that are transformed alike lie side by side, n of them, a
// multiple of W. Each takes a square of such, that are
// down and right apart, to another.

// What a transform does along one axis: with B, G and A of the package comment, B', G, A', A and G'.
static inline __attribute__((always_inline)) void NAME(patch1)(const NAME(vec) *d, NAME(vec) *t) {
	t[0] = d[0] - d[2];
	t[1] = d[1] + d[2];
	t[2] = d[2] - d[1];
	t[3] = d[1] - d[3];
}

static inline __attribute__((always_inline)) void NAME(weights1)(const NAME(vec) *g, NAME(vec) *t) {
	const NAME(vec) half = (g[0] + g[2]) * 0.5f, middle = g[1] * 0.5f;
	t[0] = g[0];
	t[1] = half + middle;
	t[2] = half - middle;
	t[3] = g[2];
}

static inline __attribute__((always_inline)) void NAME(result1)(const NAME(vec) *m, NAME(vec) *t) {
	t[0] = m[0] + m[1] + m[2];
	t[1] = m[1] - m[2] - m[3];
}

static inline __attribute__((always_inline)) void NAME(spread1)(const NAME(vec) *y, NAME(vec) *t) {
	t[0] = y[0];
	t[1] = y[0] + y[1];
	t[2] = y[0] - y[1];
	t[3] = -y[1];
}

static inline __attribute__((always_inline)) void NAME(taps1)(const NAME(vec) *m, NAME(vec) *t) {
	const NAME(vec) half = (m[1] + m[2]) * 0.5f;
	t[0] = m[0] + half;
	t[1] = (m[1] - m[2]) * 0.5f;
	t[2] = half + m[3];
}

// BOTH writes the transform along columns, then along rows, of a square of size x size to one of to_size x to_size.
#define BOTH(name, size, to_size)                                                                                                        \
	static void NAME(name)(const float *from, ptrdiff_t down, ptrdiff_t right, float *to, ptrdiff_t to_down, ptrdiff_t to_right, size_t n) { \
		for (size_t r = 0; r < n; r += W) {                                                                                       \
			NAME(vec) column[6], half[6][6], turned[6];                                                                       \
			_Pragma("GCC unroll 6") for (int j = 0; j < size; j++) {                                                                                  \
				_Pragma("GCC unroll 6") for (int i = 0; i < size; i++)                                                                            \
					column[i] = *(const NAME(vec) *)(from + i * down + j * right + r);                                 \
				NAME(name##1)(column, half[j]);                                                                           \
			}                                                                                                                 \
			_Pragma("GCC unroll 6") for (int i = 0; i < to_size; i++) {                                                                               \
				_Pragma("GCC unroll 6") for (int j = 0; j < size; j++)                                                                            \
					column[j] = half[j][i];                                                                           \
				NAME(name##1)(column, turned);                                                                            \
				_Pragma("GCC unroll 6") for (int j = 0; j < to_size; j++)                                                                         \
					*(NAME(vec) *)(to + i * to_down + j * to_right + r) = turned[j];                                   \
			}                                                                                                                 \
		}                                                                                                                         \
	}

BOTH(patch, 4, 4)
BOTH(weights, 3, 4)
BOTH(result, 4, 2)
BOTH(spread, 2, 4)
BOTH(taps, 4, 3)

// The same for squares of 4 x 4 places of a result, of 6 x 6 of an image, by the points 0, P, -P, Q, -Q and infinity.
#define P 0.625f
#define Q 1.5f
static inline __attribute__((always_inline)) void NAME(patch41)(const NAME(vec) *d, NAME(vec) *t) {
	const NAME(vec) even = d[4] - d[2] * (Q * Q), odd = (d[3] - d[1] * (Q * Q)) * P, even2 = d[4] - d[2] * (P * P), odd2 = (d[3] - d[1] * (P * P)) * Q;
	t[0] = d[0] * (P * P * Q * Q) - d[2] * (P * P + Q * Q) + d[4];
	t[1] = even + odd;
	t[2] = even - odd;
	t[3] = even2 + odd2;
	t[4] = even2 - odd2;
	t[5] = d[1] * (P * P * Q * Q) - d[3] * (P * P + Q * Q) + d[5];
}

static inline __attribute__((always_inline)) void NAME(weights41)(const NAME(vec) *g, NAME(vec) *t) {
	const float p = 1 / (2 * P * P * (P * P - Q * Q)), q = 1 / (2 * Q * Q * (Q * Q - P * P));
	const NAME(vec) even = (g[0] + g[2] * (P * P)) * p, odd = g[1] * (P * p), even2 = (g[0] + g[2] * (Q * Q)) * q, odd2 = g[1] * (Q * q);
	t[0] = g[0] * (1 / (P * P * Q * Q));
	t[1] = even + odd;
	t[2] = even - odd;
	t[3] = even2 + odd2;
	t[4] = even2 - odd2;
	t[5] = g[2];
}

static inline __attribute__((always_inline)) void NAME(result41)(const NAME(vec) *m, NAME(vec) *t) {
	const NAME(vec) sum = m[1] + m[2], difference = m[1] - m[2], sum2 = m[3] + m[4], difference2 = m[3] - m[4];
	t[0] = m[0] + sum + sum2;
	t[1] = difference * P + difference2 * Q;
	t[2] = sum * (P * P) + sum2 * (Q * Q);
	t[3] = difference * (P * P * P) + difference2 * (Q * Q * Q) + m[5];
}
#undef P
#undef Q

BOTH(weights4, 3, 6)

// READ writes the transform of size x size places of an image.
#define READ(name, one, size)                                                                                                                                                \
	static inline __attribute__((always_inline)) void NAME(name##_from)(const float *const *from, const float *corner, size_t down, size_t right, float *to, size_t to_apart, size_t n) { \
		for (size_t r = 0; r < n; r += W) {                                                                                                                          \
			NAME(vec) column[6], half[6][6], turned[6];                                                                                                          \
			_Pragma("GCC unroll 1") for (int j = 0; j < size; j++) {                                                                                             \
				_Pragma("GCC unroll 6") for (int i = 0; i < size; i++)                                                                                       \
					column[i] = *(const NAME(vec) *)((from == NULL ? corner + i * down + j * right : from[i * size + j]) + r);                            \
				NAME(one)(column, half[j]);                                                                                                          \
			}                                                                                                                                                    \
			_Pragma("GCC unroll 1") for (int i = 0; i < size; i++) {                                                                                             \
				_Pragma("GCC unroll 6") for (int j = 0; j < size; j++)                                                                                       \
					column[j] = half[j][i];                                                                                                              \
				NAME(one)(column, turned);                                                                                                           \
				_Pragma("GCC unroll 6") for (int j = 0; j < size; j++)                                                                                       \
					*(NAME(vec) *)(to + (i * size + j) * to_apart + r) = turned[j];                                                                      \
			}                                                                                                                                                    \
		}                                                                                                                                                            \
	}                                                                                                                                                                    \
	static void NAME(name)(const float *const *from, const float *corner, size_t down, size_t right, float *to, size_t to_apart, size_t n) {                            \
		if (from == NULL)                                                                                                                                            \
			NAME(name##_from)(NULL, corner, down, right, to, to_apart, n);                                                                                       \
		else                                                                                                                                                         \
			NAME(name##_from)(from, NULL, 0, 0, to, to_apart, n);                                                                                                \
	}

READ(read2, patch1, 4)
READ(read4, patch41, 6)
#undef READ

// WRITE writes the transform of size x size sums, of to_size x to_size places, with what follows; most often all of them are there.
#define WRITE(name, one, size, to_size) \
	static inline __attribute__((always_inline)) void NAME(name##_to)(const float *from, size_t from_apart, const Ending *e, size_t first, size_t at, size_t down, size_t right, const size_t apart[2], size_t n) { \
		const Ending end = *e; \
		for (size_t r = 0; r < n; r += W) { \
			NAME(vec) column[6], half[6][4], turned[4] = {0}, bias = {0}; \
			if (end.bias != NULL) \
				bias = *(const NAME(vec) *)(end.bias + first + r); \
			_Pragma("GCC unroll 1") for (int j = 0; j < size; j++) { \
				_Pragma("GCC unroll 6") for (int i = 0; i < size; i++) \
					column[i] = *(const NAME(vec) *)(from + (i * size + j) * from_apart + r); \
				NAME(one)(column, half[j]); \
			} \
			_Pragma("GCC unroll 1") for (size_t i = 0; i < down; i++) { \
				_Pragma("GCC unroll 6") for (int j = 0; j < size; j++) \
					column[j] = half[j][i]; \
				NAME(one)(column, turned); \
				_Pragma("GCC unroll 4") for (size_t j = 0; j < right; j++) { \
					const NAME(vec) v = turned[j] + bias; \
					const size_t to = at + i * apart[0] + j * apart[1] + r; \
					if (r + W <= n) \
						NAME(end)(v, &end, to); \
					else \
						NAME(finish)((const float *)&v, &end, to, n - r); \
				} \
			} \
		} \
	} \
	static void NAME(name)(const float *from, size_t from_apart, const Ending *e, size_t first, size_t at, const size_t places[2], const size_t apart[2], size_t n) { \
		if (places[0] == to_size && places[1] == to_size && n == 2 * W) \
			NAME(name##_to)(from, from_apart, e, first, at, to_size, to_size, apart, 2 * W); \
		else \
			NAME(name##_to)(from, from_apart, e, first, at, places[0], places[1], apart, n); \
	}

WRITE(write2, result1, 4, 2)
WRITE(write4, result41, 6, 4)
#undef WRITE
#undef BOTH
