// Micro-kernels: the inner loops of the convolutions, one set for each instruction set. MR, NR and
// panel have the meaning of the BLAS library BLIS: a panel is MR rows of a matrix, stored column by
// column.
#ifndef NOETHER_KERNELS_MICROKERNEL_H
#define NOETHER_KERNELS_MICROKERNEL_H

#include <stddef.h>

// A micro-kernel computes MR rows, which are output channels, by NR columns, which are pixels. MR
// is the number of float32 in two vectors, with AVX-512 MAX_MR. gemm_kernel.h says why NR is 6.
enum { NR = 6, MAX_MR = 32 };

static inline size_t min_size(size_t a, size_t b) { return a < b ? a : b; }
static inline size_t ceil_div(size_t a, size_t b) { return (a + b - 1) / b; }

// Stages at which a result can be written in NCHW: the convolution, after the addend, and at the
// end.
enum { CONVOLVED, ADDED, FINAL, STAGES };

// An Epilogue is what is applied to the sums of a convolution: y = f(sums + bias + addend), where f
// is the identity or ReLU, and 0 where the mask is not positive.
typedef struct Epilogue {
	const float *bias;          // of each channel, padded to whole panels; NULL: none
	const float *addend, *mask; // NHWC, of the shape of the result; NULL: none
	int relu;
	float *y;                // the result in NHWC; NULL: not written, and then mask is NULL
	float *nchw[STAGES];     // the result in NCHW at each stage; NULL: not written
	size_t channels, pixels; // of an image of the result
} Epilogue;

// A Transform transforms n blocks of elements, which lie side by side. Neighbouring elements of a
// block are row_stride and column_stride floats apart. n is a multiple of the vector width.
typedef void Transform(const float *src, ptrdiff_t row_stride, ptrdiff_t column_stride, float *dst, ptrdiff_t dst_row_stride,
	ptrdiff_t dst_column_stride, size_t n);

// WinogradKernels are the transforms of Winograd's algorithm for one size of output tiles.
typedef struct WinogradKernels {
	// input transforms the pixels of an input tile, n channels each, to elements dst_stride
	// apart. For tiles of size x size, they are pixels[row * size + column] or, where pixels
	// is NULL, those from corner on, row_stride and column_stride apart.
	void (*input)(const float *const *pixels, const float *corner, size_t row_stride, size_t column_stride, float *dst,
		size_t dst_stride, size_t n);
	Transform *weights;
	// output transforms the sums of n channels, from channel on, and applies the epilogue to
	// shape[0] x shape[1] pixels. The first element of the result is at index at; pixels are
	// stride[0] and stride[1] apart.
	void (*output)(const float *sums, size_t sums_stride, const Epilogue *e, size_t channel, size_t at, const size_t shape[2],
		const size_t stride[2], size_t n);
	// The transforms of the gradient by the weights: of the output's gradient, and of the sums.
	Transform *output_gradient, *weight_gradient;
} WinogradKernels;

// MicroKernels are the inner loops for one instruction set.
typedef struct MicroKernels {
	size_t mr; // rows of a panel: MR in what follows, from 16 to MAX_MR
	// gemm_indirect multiplies a panel, depth x MR, by NR columns that are anywhere in memory:
	//
	//	sums[j][r] = start[r] + sum over k of panel[k][r] x[j][displacement[k]]
	//
	// Where start is NULL it adds to sums.
	void (*gemm_indirect)(const float *panel, size_t depth, const float *const *x, const ptrdiff_t *displacement, const float *start,
		float *sums);
	// gemm sets sums[j][r] to the product of a panel and a number of columns, a multiple of NR.
	// Each column has depth contiguous elements; columns start stride floats apart.
	void (*gemm)(const float *panel, size_t depth, const float *x, size_t stride, size_t columns, float *sums);
	WinogradKernels f2, f4; // for output tiles of 2 x 2 and 4 x 4 pixels
	// finish applies an epilogue, without its bias, to n contiguous sums, at most MR. The first one
	// has index at in the result.
	void (*finish)(const float *sums, const Epilogue *e, size_t at, size_t n);
	// add adds n elements of x to sums.
	void (*add)(float *sums, const float *x, size_t n);
} MicroKernels;

// micro_kernels returns the micro-kernels for vectors of at most the given number of float32, 8 or
// 16; 0 stands for the widest. Call it only if vector_width is not 0.
const MicroKernels *micro_kernels(int lanes);

// micro_kernels_for is micro_kernels for a matrix with the given number of rows. With lanes 0 it
// chooses vectors of 8 if the rows fill an odd number of blocks of 16: with vectors of 16, half of
// the last panel, of 32 rows, would be empty.
const MicroKernels *micro_kernels_for(int lanes, size_t rows);

// vector_width returns the number of float32 in a vector of this processor: 16, 8, or 0 if there
// are no micro-kernels for it.
int vector_width(void);

// set_vector_width sets it, before anything else is called. Go finds it, since not every compiler of
// C links what __builtin_cpu_supports needs: with Zig's it is always false.
void set_vector_width(int floats);

// transpose writes a matrix, rows x columns with rows src_stride apart, as columns x rows with rows
// dst_stride apart.
void transpose(const float *src, size_t src_stride, float *dst, size_t dst_stride, size_t rows, size_t columns);

#endif
