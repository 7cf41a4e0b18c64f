// The kernel of one kind of processor: tile.c includes this once for each, with W, the lanes of a vector, and NAME, which adds the processor to a
// name. Twelve sums, two vectors of a panel and a factor fit into 16 registers, and twelve products under way hide how long each takes.

typedef float NAME(vec) __attribute__((vector_size(4 * W), aligned(4), may_alias));

static void NAME(multiply)(const float *restrict panel, size_t depth, const float *const *x, const ptrdiff_t *restrict at, const float *start, float *restrict sums) {
	NAME(vec) *to = (NAME(vec) *)sums, sum[COLUMNS][2];
	const float *from[COLUMNS];
#pragma GCC unroll 6
	for (int j = 0; j < COLUMNS; j++) {
		const NAME(vec) *begin = start == NULL ? to + 2 * j : (const NAME(vec) *)start;
		from[j] = x[j];
		sum[j][0] = begin[0];
		sum[j][1] = begin[1];
	}
	for (size_t k = 0; k < depth; k++, panel += 2 * W) {
		const NAME(vec) a = *(const NAME(vec) *)panel, b = *(const NAME(vec) *)(panel + W);
		const ptrdiff_t place = at[k];
#pragma GCC unroll 6
		for (int j = 0; j < COLUMNS; j++) {
			sum[j][0] += a * from[j][place];
			sum[j][1] += b * from[j][place];
		}
	}
#pragma GCC unroll 6
	for (int j = 0; j < COLUMNS; j++) {
		to[2 * j] = sum[j][0];
		to[2 * j + 1] = sum[j][1];
	}
}

static void NAME(product)(const float *restrict panel, size_t depth, const float *restrict x, size_t apart, size_t columns, float *restrict sums) {
	for (size_t c = 0; c < columns; c += COLUMNS, x += COLUMNS * apart, sums += COLUMNS * 2 * W) {
		NAME(vec) *to = (NAME(vec) *)sums, sum[COLUMNS][2] = {0};
		const float *from[COLUMNS], *p = panel;
#pragma GCC unroll 6
		for (int j = 0; j < COLUMNS; j++)
			from[j] = x + j * apart;
#pragma GCC unroll 1
		for (size_t k = 0; k < depth; k++, p += 2 * W) {
			const NAME(vec) a = *(const NAME(vec) *)p, b = *(const NAME(vec) *)(p + W);
#pragma GCC unroll 6
			for (int j = 0; j < COLUMNS; j++) {
				sum[j][0] += a * from[j][k];
				sum[j][1] += b * from[j][k];
			}
		}
#pragma GCC unroll 6
		for (int j = 0; j < COLUMNS; j++) {
			to[2 * j] = sum[j][0];
			to[2 * j + 1] = sum[j][1];
		}
	}
}

typedef int NAME(bits) __attribute__((vector_size(4 * W), aligned(4), may_alias));

// end ends the sums of one vector.
static inline __attribute__((always_inline)) void NAME(end)(NAME(vec) v, const Ending *e, size_t at) {
	if (e->more != NULL)
		v += *(const NAME(vec) *)(e->more + at);
	if (e->relu)
		v = (NAME(vec))((NAME(bits))v & ~(NAME(bits))(v < 0)); // what is not a number stays so
	if (e->mask != NULL)
		v = (NAME(vec))((NAME(bits))v & (NAME(bits))(*(const NAME(vec) *)(e->mask + at) > 0));
	*(NAME(vec) *)(e->y + at) = v;
}

static void NAME(finish)(const float *sums, const Ending *e, size_t at, size_t n) {
	size_t i = 0;
	for (; i + W <= n; i += W)
		NAME(end)(*(const NAME(vec) *)(sums + i), e, at + i);
	for (; i < n; i++) {
		float v = sums[i];
		if (e->more != NULL)
			v += e->more[at + i];
		if (e->relu && v < 0)
			v = 0;
		e->y[at + i] = e->mask != NULL && !(e->mask[at + i] > 0) ? 0 : v;
	}
}

static void NAME(add)(float *restrict sums, const float *restrict more, size_t n) {
	size_t i = 0;
	for (; i + W <= n; i += W)
		*(NAME(vec) *)(sums + i) += *(const NAME(vec) *)(more + i);
	for (; i < n; i++)
		sums[i] += more[i];
}
