// Convolutions and their gradients, as sums over kernel offsets (indirect.c) or by Winograd's
// algorithm (winograd.c). The package comment (kernels.go) has the formulas. Work is divided into
// independent parts, which any thread may compute: functions whose names end in part or panel
// compute one of them. Weights are float32: output channels x input channels x kernel elements, in
// short out x in x kernel. microkernel.h defines panel, MR and NR.
#ifndef NOETHER_KERNELS_CONVOLUTION_H
#define NOETHER_KERNELS_CONVOLUTION_H

#include "microkernel.h"
#include "problem.h"

// Work is divided into about ENOUGH_PARTS parts or more if it is large enough, so that all threads
// have some. This does not depend on the number of threads, so neither do the results.
enum { ENOUGH_PARTS = 16 };

// A Grid is the number of rows and columns of the pixels or tiles of one sample, and a Position is
// one of these pixels or tiles.
typedef struct Grid {
	size_t rows, columns;
} Grid;

typedef struct Position {
	size_t sample, y, x;
} Position;

// position_of returns position i, counted over all samples row after row.
static inline Position position_of(const Grid *g, size_t i) {
	return (Position){i / (g->rows * g->columns), i / g->columns % g->rows, i % g->columns};
}

// advance moves to the next column, row or sample.
static inline void advance(Position *p, const Grid *g) {
	if (++p->x < g->columns)
		return;
	p->x = 0;
	if (++p->y < g->rows)
		return;
	p->y = 0;
	p->sample++;
}

// An Input is a batch of feature maps and a copy of it that is padded with zeros. Pixel (y, x) is
// at row y + top and column x + left of the copy, which has rows x columns pixels. If top or left
// are negative, rows or columns are cropped.
typedef struct Input {
	// Samples x channels x height x width or, with nhwc, samples x height x width x channels.
	const float *data;
	size_t samples, channels, height, width;
	ptrdiff_t top, left;
	size_t rows, columns;
	int nhwc;      // data is NHWC
	int to_nhwc;   // data is NCHW, and the copy NHWC
	size_t pitch;  // floats from pixel to pixel of an NHWC copy; those after the channels are 0
	float *padded; // in the layout of data or, with to_nhwc, samples x rows x columns x pitch
} Input;

// pad_part copies one part of an input. pad_parts returns the number of parts.
size_t pad_parts(const Input *in);
void pad_part(void *input, size_t part);

// A Convolution computes pixels of y = epilogue(bias + sum over channels and kernel offsets of w
// x), for the weights w and the input x. The epilogue (microkernel.h) may add a tensor, and apply
// ReLU or a mask. If the convolution is transposed, its input is a gradient dy instead of x, and
// its result is dx.
typedef struct Convolution {
	const MicroKernels *mk;
	Input input;
	const float *w, *bias; // w is in x out x kernel if transposed; bias may be NULL
	int transposed;
	size_t kernel_size;    // height x width
	float *panels;         // of w, packed or transformed
	int packed;            // whether panels are filled
	Epilogue epilogue;
	size_t out, height, width; // of the result; out: channels
	// For sums over kernel offsets. For each position i of grid, with input channel c and kernel
	// offset k; displacement is in floats, from pixel i stride of padded:
	//
	//	y[first + i step] = bias + sum over c, k of w[c, offset[k]] padded[i stride + displacement[c, k]]
	Grid grid;
	size_t first[2], step[2], stride[2];
	size_t offsets;          // number of kernel elements that are used, at most kernel_size
	size_t *offset;          // their indices into the kernel; NULL: all, in order
	ptrdiff_t *displacement; // channels x offsets, or offsets x channels in NHWC
	// For Winograd's algorithm.
	size_t side; // of output tiles: 2 or 4
	Scratch *scratch;
} Convolution;

// panel_count returns the number of panels of w, each for MR output channels.
size_t panel_count(const Convolution *c);

// Panels of indirect.c: panel x channels x offsets x MR, or panel x offsets x channels x MR in
// NHWC. indirect_panel_floats returns the size of all panels together.
size_t indirect_panel_floats(const Convolution *c);
void indirect_pack_panel(void *convolution, size_t panel);
size_t indirect_parts(const Convolution *c);
void indirect_part(void *convolution, size_t part);

// Panels of winograd.c: element of a transformed kernel x panel x channels x MR. The data of the
// input must be NHWC: they are the padded copy of an NCHW input, or an NHWC input itself. The latter
// is not copied, so its padding is not in memory.
size_t winograd_panel_floats(const Convolution *c);
void winograd_pack_panel(void *convolution, size_t panel);
size_t winograd_parts(const Convolution *c);
void winograd_part(void *convolution, size_t part);

// A WeightGradient computes dw[o, c, k] = sum over samples and pixels i of dy[o, i] padded[c, i
// stride + displacement[k]], for inputs and gradients in NCHW: the gradient with respect to the
// weight of output channel o, input channel c and kernel offset k, from dy, that with respect to
// the result.
typedef struct WeightGradient {
	const MicroKernels *mk;
	Input input, dy; // dy is copied only for Winograd's algorithm
	float *dw;
	size_t stride[2], offsets; // offsets: number of kernel elements
	ptrdiff_t *displacement;   // of each of them
	float *panels; // of dy: panel x samples x pixels x MR
	// For Winograd's algorithm.
	size_t side; // of the tiles of dy: 2 or 4
	float *sums; // winograd_gradient_floats(g) floats: the sums of all parts
	Scratch *scratch;
} WeightGradient;

// weight_gradient_pack_part packs one sample for one panel. weight_gradient_part computes some of
// the columns (channels x offsets) of one panel.
size_t weight_gradient_pack_parts(const WeightGradient *g);
void weight_gradient_pack_part(void *gradient, size_t part);
size_t weight_gradient_parts(const WeightGradient *g);
void weight_gradient_part(void *gradient, size_t part);

// winograd_gradient_part sums over some tiles for a block of channels. winograd_gradient_end_part
// adds these sums and transforms the result; it has no parts where each block is summed by one part,
// which then transforms its sums.
size_t winograd_gradient_floats(const WeightGradient *g);
size_t winograd_gradient_parts(const WeightGradient *g);
void winograd_gradient_part(void *gradient, size_t part);
size_t winograd_gradient_end_parts(const WeightGradient *g);
void winograd_gradient_end_part(void *gradient, size_t part);

// A Run is consecutive pixels of one image.
typedef struct Run {
	size_t sample, pixel, count;
} Run;

// writes_nchw reports whether a result is written in NCHW.
int writes_nchw(const Epilogue *e);

// finish_run applies an epilogue that writes NCHW to the sums of a run, which include the bias.
// sums is count x MR, for n channels from channel on. It overwrites sums.
void finish_run(const MicroKernels *mk, const Epilogue *e, const Run *run, size_t channel, size_t n, float *sums);

#endif
