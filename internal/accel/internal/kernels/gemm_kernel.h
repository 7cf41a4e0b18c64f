// Matrix products and the epilogue (addend, ReLU and mask; the sums include the bias already) for
// one instruction set. microkernel.c includes this file once for each set, with W, the number of
// float32 in a vector, and NAME, which adds the instruction set to a name. A panel is 2 W rows of a
// matrix, stored column by column. microkernel.h describes the functions.
//
// NR, the number of columns that are computed at once, is 6: twelve vectors of sums, two of a panel
// and one of a factor fit into 16 registers, and twelve independent multiply-adds hide the latency
// of each.

typedef float NAME(vec) __attribute__((vector_size(4 * W), aligned(4), may_alias));
typedef int NAME(bits) __attribute__((vector_size(4 * W), aligned(4), may_alias));

// accumulate adds the product of a panel, 2 W x depth, and NR columns to sum. Element k of column j
// is x[j][displacement[k]]; displacement is NULL for contiguous columns, with the elements x[j][k].
INLINE void NAME(accumulate)(const float *restrict panel, size_t depth, const float *const *x, const ptrdiff_t *restrict displacement,
	NAME(vec) sum[NR][2]) {
	UNROLL(1) for (size_t k = 0; k < depth; k++, panel += 2 * W) {
		const NAME(vec) a = *(const NAME(vec) *)panel, b = *(const NAME(vec) *)(panel + W);
		const ptrdiff_t at = displacement == NULL ? (ptrdiff_t)k : displacement[k];
		UNROLL(6) for (int j = 0; j < NR; j++) {
			sum[j][0] += a * x[j][at];
			sum[j][1] += b * x[j][at];
		}
	}
}

static void NAME(gemm_indirect)(const float *restrict panel, size_t depth, const float *const *x, const ptrdiff_t *restrict displacement,
	const float *start, float *restrict sums) {
	NAME(vec) *to = (NAME(vec) *)sums, sum[NR][2];
	const float *from[NR];
	UNROLL(6) for (int j = 0; j < NR; j++) {
		const NAME(vec) *begin = start == NULL ? to + 2 * j : (const NAME(vec) *)start;
		from[j] = x[j];
		sum[j][0] = begin[0];
		sum[j][1] = begin[1];
	}
	NAME(accumulate)(panel, depth, from, displacement, sum);
	UNROLL(12) for (int j = 0; j < 2 * NR; j++) to[j] = sum[j / 2][j % 2];
}

static void NAME(gemm)(const float *restrict panel, size_t depth, const float *restrict x, size_t stride, size_t columns, float *restrict sums) {
	for (size_t c = 0; c < columns; c += NR, x += NR * stride, sums += NR * 2 * W) {
		NAME(vec) *to = (NAME(vec) *)sums, sum[NR][2] = {0};
		const float *from[NR];
		UNROLL(6) for (int j = 0; j < NR; j++) from[j] = x + j * stride;
		NAME(accumulate)(panel, depth, from, NULL, sum);
		UNROLL(12) for (int j = 0; j < 2 * NR; j++) to[j] = sum[j / 2][j % 2];
	}
}

// apply applies an epilogue, without its bias, to one vector of sums, and writes it to the result
// from index at on.
INLINE void NAME(apply)(NAME(vec) v, const Epilogue *e, size_t at) {
	if (e->addend != NULL)
		v += *(const NAME(vec) *)(e->addend + at);
	if (e->relu)
		v = (NAME(vec))((NAME(bits))v & ~(NAME(bits))(v < 0)); // NaN stays NaN
	if (e->mask != NULL)
		v = (NAME(vec))((NAME(bits))v & (NAME(bits))(*(const NAME(vec) *)(e->mask + at) > 0));
	*(NAME(vec) *)(e->y + at) = v;
}

static void NAME(finish)(const float *sums, const Epilogue *e, size_t at, size_t n) {
	size_t i = 0;
	for (; i + W <= n; i += W)
		NAME(apply)(*(const NAME(vec) *)(sums + i), e, at + i);
	for (; i < n; i++) {
		float v = sums[i];
		if (e->addend != NULL)
			v += e->addend[at + i];
		if (e->relu && v < 0)
			v = 0;
		e->y[at + i] = e->mask != NULL && !(e->mask[at + i] > 0) ? 0 : v;
	}
}

static void NAME(add)(float *restrict sums, const float *restrict x, size_t n) {
	for (size_t i = 0; i < n; i++)
		sums[i] += x[i];
}
