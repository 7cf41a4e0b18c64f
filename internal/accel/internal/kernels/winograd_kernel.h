// The transforms of Winograd's algorithm for one instruction set. microkernel.c includes this after
// gemm_kernel.h, which explains W and NAME. B, G and A are the matrices of the package comment. A
// panel is a group of 2 W output channels.

// Transforms along one axis, for output tiles of 2 x 2: B', G, A', A and G'. The arguments are d, a
// column of the input tile, g of the kernel, m of the sums of products, y of the output's gradient,
// and t, the result.
INLINE void NAME(input2)(const NAME(vec) *d, NAME(vec) *t) {
	t[0] = d[0] - d[2];
	t[1] = d[1] + d[2];
	t[2] = d[2] - d[1];
	t[3] = d[1] - d[3];
}

INLINE void NAME(weights2)(const NAME(vec) *g, NAME(vec) *t) {
	const NAME(vec) half = (g[0] + g[2]) * 0.5f, middle = g[1] * 0.5f;
	t[0] = g[0];
	t[1] = half + middle;
	t[2] = half - middle;
	t[3] = g[2];
}

INLINE void NAME(output2)(const NAME(vec) *m, NAME(vec) *t) {
	t[0] = m[0] + m[1] + m[2];
	t[1] = m[1] - m[2] - m[3];
}

INLINE void NAME(output_gradient2)(const NAME(vec) *y, NAME(vec) *t) {
	t[0] = y[0];
	t[1] = y[0] + y[1];
	t[2] = y[0] - y[1];
	t[3] = -y[1];
}

INLINE void NAME(weight_gradient2)(const NAME(vec) *m, NAME(vec) *t) {
	const NAME(vec) half = (m[1] + m[2]) * 0.5f;
	t[0] = m[0] + half;
	t[1] = (m[1] - m[2]) * 0.5f;
	t[2] = half + m[3];
}

// The same for output tiles of 4 x 4, with the interpolation points 0, P, -P, Q, -Q and infinity.
// Variables whose names end in 2 belong to Q and -Q, those without a number to P and -P.
#define P 0.625f
#define Q 1.5f
INLINE void NAME(input4)(const NAME(vec) *d, NAME(vec) *t) {
	const NAME(vec) even = d[4] - d[2] * (Q * Q), odd = (d[3] - d[1] * (Q * Q)) * P, even2 = d[4] - d[2] * (P * P), odd2 = (d[3] - d[1] * (P * P)) * Q;
	t[0] = d[0] * (P * P * Q * Q) - d[2] * (P * P + Q * Q) + d[4];
	t[1] = even + odd;
	t[2] = even - odd;
	t[3] = even2 + odd2;
	t[4] = even2 - odd2;
	t[5] = d[1] * (P * P * Q * Q) - d[3] * (P * P + Q * Q) + d[5];
}

INLINE void NAME(weights4)(const NAME(vec) *g, NAME(vec) *t) {
	const float p = 1 / (2 * P * P * (P * P - Q * Q)), q = 1 / (2 * Q * Q * (Q * Q - P * P));
	const NAME(vec) even = (g[0] + g[2] * (P * P)) * p, odd = g[1] * (P * p), even2 = (g[0] + g[2] * (Q * Q)) * q, odd2 = g[1] * (Q * q);
	t[0] = g[0] * (1 / (P * P * Q * Q));
	t[1] = even + odd;
	t[2] = even - odd;
	t[3] = even2 + odd2;
	t[4] = even2 - odd2;
	t[5] = g[2];
}

INLINE void NAME(output4)(const NAME(vec) *m, NAME(vec) *t) {
	const NAME(vec) sum = m[1] + m[2], difference = m[1] - m[2], sum2 = m[3] + m[4], difference2 = m[3] - m[4];
	t[0] = m[0] + sum + sum2;
	t[1] = difference * P + difference2 * Q;
	t[2] = sum * (P * P) + sum2 * (Q * Q);
	t[3] = difference * (P * P * P) + difference2 * (Q * Q * Q) + m[5];
}

INLINE void NAME(output_gradient4)(const NAME(vec) *y, NAME(vec) *t) {
	const NAME(vec) even = y[0] + y[2] * (P * P), odd = (y[1] + y[3] * (P * P)) * P, even2 = y[0] + y[2] * (Q * Q), odd2 = (y[1] + y[3] * (Q * Q)) * Q;
	t[0] = y[0];
	t[1] = even + odd;
	t[2] = even - odd;
	t[3] = even2 + odd2;
	t[4] = even2 - odd2;
	t[5] = y[3];
}

INLINE void NAME(weight_gradient4)(const NAME(vec) *m, NAME(vec) *t) {
	const float p = 1 / (2 * P * P * (P * P - Q * Q)), q = 1 / (2 * Q * Q * (Q * Q - P * P));
	const NAME(vec) sum = (m[1] + m[2]) * p, sum2 = (m[3] + m[4]) * q;
	t[0] = m[0] * (1 / (P * P * Q * Q)) + sum + sum2;
	t[1] = (m[1] - m[2]) * (P * p) + (m[3] - m[4]) * (Q * q);
	t[2] = sum * (P * P) + sum2 * (Q * Q) + m[5];
}
#undef P
#undef Q

// TRANSFORM applies a transform along one axis to the columns of a block of size x size vectors,
// and then to the rows, of which the result has the given number. The outer loops are unrolled
// outer times. load is an expression for the address of the vector at row i and column j. store is
// a statement that uses row i of the result, which is in out.
#define TRANSFORM(one_axis, size, rows, outer, load, store)                               \
	NAME(vec) in[6], columns[6][6], out[6];                                           \
	UNROLL(outer) for (int j = 0; j < size; j++) {                                    \
		UNROLL(6) for (int i = 0; i < size; i++) in[i] = *(const NAME(vec) *)(load); \
		NAME(one_axis)(in, columns[j]);                                           \
	}                                                                                 \
	UNROLL(outer) for (size_t i = 0; i < rows; i++) {                                 \
		UNROLL(6) for (int j = 0; j < size; j++) in[j] = columns[j][i];           \
		NAME(one_axis)(in, out);                                                  \
		store                                                                     \
	}

// BLOCK_TRANSFORM defines a Transform whose source blocks have size x size pixels and whose
// results have to x to.
#define BLOCK_TRANSFORM(name, one_axis, size, to)                                                                               \
	static void NAME(name)(const float *src, ptrdiff_t row_stride, ptrdiff_t column_stride, float *dst, ptrdiff_t dst_row_stride, \
		ptrdiff_t dst_column_stride, size_t n) {                                                                        \
		for (size_t r = 0; r < n; r += W) {                                                                             \
			TRANSFORM(one_axis, size, to, 6, src + i * row_stride + j * column_stride + r,                          \
				UNROLL(6) for (int j = 0; j < to; j++)                                                          \
					*(NAME(vec) *)(dst + i * dst_row_stride + j * dst_column_stride + r) = out[j];)         \
		}                                                                                                               \
	}

BLOCK_TRANSFORM(transform_weights2, weights2, 3, 4)
BLOCK_TRANSFORM(transform_weights4, weights4, 3, 6)
BLOCK_TRANSFORM(transform_output_gradient2, output_gradient2, 2, 4)
BLOCK_TRANSFORM(transform_output_gradient4, output_gradient4, 4, 6)
BLOCK_TRANSFORM(transform_weight_gradient2, weight_gradient2, 4, 3)
BLOCK_TRANSFORM(transform_weight_gradient4, weight_gradient4, 6, 3)

// INPUT_TRANSFORM defines WinogradKernels.input for input tiles of size x size.
#define INPUT_TRANSFORM(name, one_axis, size)                                                                                       \
	INLINE void NAME(name##_inline)(const float *const *pixels, const float *corner, size_t row_stride, size_t column_stride,   \
		float *dst, size_t dst_stride, size_t n) {                                                                          \
		for (size_t r = 0; r < n; r += W) {                                                                                 \
			TRANSFORM(one_axis, size, size, 1,                                                                          \
				(pixels == NULL ? corner + i * row_stride + j * column_stride : pixels[i * size + j]) + r,          \
				UNROLL(6) for (int j = 0; j < size; j++)                                                            \
					*(NAME(vec) *)(dst + (i * size + j) * dst_stride + r) = out[j];)                            \
		}                                                                                                                   \
	}                                                                                                                           \
	static void NAME(name)(const float *const *pixels, const float *corner, size_t row_stride, size_t column_stride, float *dst, \
		size_t dst_stride, size_t n) {                                                                                      \
		if (pixels == NULL)                                                                                                 \
			NAME(name##_inline)(NULL, corner, row_stride, column_stride, dst, dst_stride, n);                           \
		else                                                                                                                \
			NAME(name##_inline)(pixels, NULL, 0, 0, dst, dst_stride, n);                                                \
	}

INPUT_TRANSFORM(transform_input2, input2, 4)
INPUT_TRANSFORM(transform_input4, input4, 6)

// OUTPUT_TRANSFORM defines WinogradKernels.output for sums of size x size elements and output tiles
// of to x to pixels. Whole tiles of whole panels, which are most, have their own copy of the loops,
// with constant bounds.
#define OUTPUT_TRANSFORM(name, one_axis, size, to)                                                                                    \
	INLINE void NAME(name##_inline)(const float *sums, size_t sums_stride, const Epilogue *epilogue, size_t channel, size_t at,   \
		size_t rows, size_t width, const size_t stride[2], size_t n) {                                                        \
		const Epilogue e = *epilogue;                                                                                         \
		for (size_t r = 0; r < n; r += W) {                                                                                   \
			NAME(vec) bias = {0};                                                                                         \
			if (e.bias != NULL)                                                                                           \
				bias = *(const NAME(vec) *)(e.bias + channel + r);                                                    \
			TRANSFORM(one_axis, size, rows, 1, sums + (i * size + j) * sums_stride + r,                                   \
				UNROLL(4) for (size_t j = 0; j < width; j++) {                                                        \
					const NAME(vec) v = out[j] + bias;                                                            \
					const size_t index = at + i * stride[0] + j * stride[1] + r;                                  \
					if (r + W <= n)                                                                               \
						NAME(apply)(v, &e, index);                                                            \
					else                                                                                          \
						NAME(finish)((const float *)&v, &e, index, n - r);                                    \
				})                                                                                                    \
		}                                                                                                                     \
	}                                                                                                                             \
	static void NAME(name)(const float *sums, size_t sums_stride, const Epilogue *e, size_t channel, size_t at,                   \
		const size_t shape[2], const size_t stride[2], size_t n) {                                                            \
		if (shape[0] == to && shape[1] == to && n == 2 * W)                                                                   \
			NAME(name##_inline)(sums, sums_stride, e, channel, at, to, to, stride, 2 * W);                                \
		else                                                                                                                  \
			NAME(name##_inline)(sums, sums_stride, e, channel, at, shape[0], shape[1], stride, n);                        \
	}

OUTPUT_TRANSFORM(transform_output2, output2, 4, 2)
OUTPUT_TRANSFORM(transform_output4, output4, 6, 4)

static const MicroKernels NAME(kernels) = {
	.mr = 2 * W,
	.gemm_indirect = NAME(gemm_indirect),
	.gemm = NAME(gemm),
	.f2 = {NAME(transform_input2), NAME(transform_weights2), NAME(transform_output2), NAME(transform_output_gradient2), NAME(transform_weight_gradient2)},
	.f4 = {NAME(transform_input4), NAME(transform_weights4), NAME(transform_output4), NAME(transform_output_gradient4), NAME(transform_weight_gradient4)},
	.finish = NAME(finish),
	.add = NAME(add),
};
#undef TRANSFORM
#undef BLOCK_TRANSFORM
#undef INPUT_TRANSFORM
#undef OUTPUT_TRANSFORM
