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
			NAME(vec) column[4], half[4][4], turned[4];                                                                       \
			_Pragma("GCC unroll 4") for (int j = 0; j < size; j++) {                                                                                  \
				_Pragma("GCC unroll 4") for (int i = 0; i < size; i++)                                                                            \
					column[i] = *(const NAME(vec) *)(from + i * down + j * right + r);                                 \
				NAME(name##1)(column, half[j]);                                                                           \
			}                                                                                                                 \
			_Pragma("GCC unroll 4") for (int i = 0; i < to_size; i++) {                                                                               \
				_Pragma("GCC unroll 4") for (int j = 0; j < size; j++)                                                                            \
					column[j] = half[j][i];                                                                           \
				NAME(name##1)(column, turned);                                                                            \
				_Pragma("GCC unroll 4") for (int j = 0; j < to_size; j++)                                                                         \
					*(NAME(vec) *)(to + i * to_down + j * to_right + r) = turned[j];                                   \
			}                                                                                                                 \
		}                                                                                                                         \
	}

BOTH(patch, 4, 4)
BOTH(weights, 3, 4)
BOTH(result, 4, 2)
BOTH(spread, 2, 4)
BOTH(taps, 4, 3)
#undef BOTH
