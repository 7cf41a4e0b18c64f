// The kernels of one kind of processor: gram.c includes this once for each, with W, the floats in a vector, MR, the columns of
// a panel that are multiplied at once, and NAME, which adds the processor to a name.

typedef float NAME(vec) __attribute__((vector_size(4 * W), aligned(4), may_alias));
typedef double NAME(wide) __attribute__((vector_size(4 * W), aligned(8), may_alias)); // W / 2 doubles
typedef float NAME(half) __attribute__((vector_size(2 * W), aligned(4), may_alias));  // the floats of a wide

// Copies n rows of cols values, less shift, to panels of W columns, the last one filled up with zeros; row k is the one at
// order[k] if there is an order. dst holds DEPTH rows of all panels, panel after panel, then the next DEPTH rows. These are
// its panels from first on.
static void NAME(pack)(float *dst, extent panels, extent first, const float *rows, extent stride, const extent *order, extent n, extent cols, const float *shift) {
	for (extent top = 0; top < n; top += DEPTH) {
		extent depth = n - top < DEPTH ? n - top : DEPTH;
		float *part = dst + (top * panels + first * depth) * W;
		extent j = 0;
		for (; j + SIDE * W <= cols; j += SIDE * W)
			for (extent k = 0; k < depth; k++) {
				const float *row = rows + (order ? order[top + k] : top + k) * stride + j;
				float *to = part + j * depth + k * W;
#pragma GCC unroll 4
				for (int p = 0; p < SIDE; p++)
					*(NAME(vec) *)(to + p * depth * W) = *(const NAME(vec) *)(row + p * W) - *(const NAME(vec) *)(shift + j + p * W);
			}
		for (; j < cols; j += W)
			for (extent k = 0; k < depth; k++) {
				const float *row = rows + (order ? order[top + k] : top + k) * stride + j;
				float *to = part + j * depth + k * W;
				for (extent i = 0; i < W; i++)
					to[i] = j + i < cols ? row[i] - shift[j + i] : 0;
			}
	}
}

// Adds the products of MR columns of a panel with the columns of nv panels, depth rows long, to c; first says that c holds
// nothing yet. The sums stay in registers.
static inline __attribute__((always_inline)) void NAME(tile)(const int nv, extent depth, const float *restrict a, const float *restrict b, float *restrict c, extent stride, int first) {
	NAME(vec) sum[MR][NV];
#pragma GCC unroll 8
	for (int i = 0; i < MR; i++)
#pragma GCC unroll 4
		for (int v = 0; v < nv; v++)
			sum[i][v] = (NAME(vec)){0};
	for (extent k = 0; k < depth; k++) {
		NAME(vec) y[NV];
		__builtin_prefetch(a + (depth + k) * W); // of the next panel
#pragma GCC unroll 4
		for (int v = 0; v < nv; v++)
			y[v] = *(const NAME(vec) *)(b + (v * depth + k) * W);
#pragma GCC unroll 8
		for (int i = 0; i < MR; i++) {
#pragma GCC unroll 4
			for (int v = 0; v < nv; v++)
				sum[i][v] += a[k * W + i] * y[v];
		}
	}
#pragma GCC unroll 8
	for (int i = 0; i < MR; i++)
#pragma GCC unroll 4
		for (int v = 0; v < nv; v++) {
			NAME(vec) *to = (NAME(vec) *)(c + i * stride + v * W);
			if (first)
				*to = sum[i][v];
			else
				*to += sum[i][v];
		}
}

// Puts the products of the columns of panels i0 to i1 of a with those of panels j0 to j1 of b, n rows long, in c. Where
// triangle is set a and b are the same, and products below the diagonal are left out.
static void NAME(multiply)(const float *a, extent a_panels, extent i0, extent i1, const float *b, extent b_panels, extent j0, extent j1, extent n, float *c, extent stride, int triangle) {
	for (extent top = 0; top < n; top += DEPTH) {
		extent depth = n - top < DEPTH ? n - top : DEPTH;
		const float *pa = a + top * a_panels * W, *pb = b + top * b_panels * W;
		extent ahead = NV * depth * W * sizeof(float) / ((i1 - i0) * (W / MR));
		for (extent j = j0; j < j1; j += NV) {
			int nv = j1 - j < NV ? j1 - j : NV;
			const float *y = pb + j * depth * W;
			const char *next = (const char *)(y + nv * depth * W); // what follows is called for bit by bit
			for (extent i = i0; i < i1; i++) {
				if (triangle && i >= j + nv)
					break;
				for (int m = 0; m < W; m += MR) {
					for (extent at = 0; at < ahead; at += 64)
						__builtin_prefetch(next + at, 0, 2);
					next += ahead;
					const float *x = pa + i * depth * W + m;
					float *to = c + ((i - i0) * W + m) * stride + (j - j0) * W;
					if (nv == NV)
						NAME(tile)(NV, depth, x, y, to, stride, top == 0);
					else if (nv == 2)
						NAME(tile)(2, depth, x, y, to, stride, top == 0);
					else
						NAME(tile)(1, depth, x, y, to, stride, top == 0);
				}
			}
		}
	}
}

// dst += products + u v
static void NAME(add_double)(double *dst, const float *products, double u, const double *v, extent n) {
	NAME(wide) by = u - (NAME(wide)){0};
	extent j = 0;
	for (; j + W / 2 <= n; j += W / 2)
		*(NAME(wide) *)(dst + j) += __builtin_convertvector(*(const NAME(half) *)(products + j), NAME(wide)) + by * *(const NAME(wide) *)(v + j);
	for (; j < n; j++)
		dst[j] += products[j] + u * v[j];
}

// dst += products + u v, in float64 before it is rounded
static void NAME(add_single)(float *dst, const float *products, double u, const double *v, extent n) {
	NAME(wide) by = u - (NAME(wide)){0};
	extent j = 0;
	for (; j + W / 2 <= n; j += W / 2) {
		NAME(half) *to = (NAME(half) *)(dst + j);
		NAME(wide) sum = __builtin_convertvector(*to, NAME(wide)) + (__builtin_convertvector(*(const NAME(half) *)(products + j), NAME(wide)) + by * *(const NAME(wide) *)(v + j));
		*to = __builtin_convertvector(sum, NAME(half));
	}
	for (; j < n; j++)
		dst[j] = (float)(dst[j] + (products[j] + u * v[j]));
}

// Adds n rows of cols values to sum.
static void NAME(sum)(double *sum, const float *rows, extent n, extent cols) {
	for (; n >= 4; n -= 4, rows += 4 * cols) {
		const float *b = rows + cols, *c = b + cols, *d = c + cols;
		extent j = 0;
		for (; j + W / 2 <= cols; j += W / 2) {
			NAME(wide) x = __builtin_convertvector(*(const NAME(half) *)(rows + j), NAME(wide)) + __builtin_convertvector(*(const NAME(half) *)(b + j), NAME(wide));
			NAME(wide) y = __builtin_convertvector(*(const NAME(half) *)(c + j), NAME(wide)) + __builtin_convertvector(*(const NAME(half) *)(d + j), NAME(wide));
			*(NAME(wide) *)(sum + j) += x + y;
		}
		for (; j < cols; j++)
			sum[j] += ((double)rows[j] + b[j]) + ((double)c[j] + d[j]);
	}
	for (; n > 0; n--, rows += cols)
		for (extent j = 0; j < cols; j++)
			sum[j] += rows[j];
}

// Takes shift off n rows of cols values.
static void NAME(shift)(float *rows, extent n, extent cols, const float *shift) {
	for (; n > 0; n--, rows += cols) {
		extent j = 0;
		for (; j + W <= cols; j += W)
			*(NAME(vec) *)(rows + j) -= *(const NAME(vec) *)(shift + j);
		for (; j < cols; j++)
			rows[j] -= shift[j];
	}
}
