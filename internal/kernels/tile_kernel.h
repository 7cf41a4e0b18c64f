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
