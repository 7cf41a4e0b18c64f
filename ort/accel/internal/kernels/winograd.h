// Convolutions of 3 x 3 places next to one another, and their gradients, in 16 products for four places where sums over taps take 36: the package
// comment has the formulas. Each function of a part does a part of the work, and parts of one kind do not depend on one another.
#ifndef NOETHER_KERNELS_WINOGRAD_H
#define NOETHER_KERNELS_WINOGRAD_H

#include <stddef.h>

#include "tile.h"

// Memory for a while, as a part takes and gives it; NULL where there is none.
typedef struct Memory {
	void *(*take)(struct Memory *m, size_t bytes);
	void (*give)(struct Memory *m, void *p);
	void *of;
	int lacking; // set where there was none
} Memory;

// A field is an image with the channels of a place side by side: place (y, x) of the image is at row y + top and column x + left of rows x columns, what is
// outside of the image is 0, and what is outside of the field is left out. wide is the channels, and zeros up to a multiple of some.
typedef struct Field {
	const float *data; // samples x channels x height x width
	size_t samples, channels, height, width;
	ptrdiff_t top, left;
	size_t rows, columns, wide;
	float *places; // samples x rows x columns x wide; none of one with its channels last
	int last;      // data are samples x height x width x channels
} Field;

// field_part fills one row of samples x rows.
void field_part(void *field, size_t part);

// A convolution, or its gradient by the image where it is backward.
typedef struct Winograd {
	const Tile *tile;
	Memory *memory;
	size_t side;  // of squares of a result: 2, or 4 where channels are last
	Field source; // of 2 tiles + 2 rows and columns
	const float *w, *bias; // out x channels x 9, or channels x out x 9 where it is backward; no bias: NULL
	int backward;
	float *panels; // of w, transformed: 16 or 36 x panel x channels x rows
	int prepared;  // they are there already
	const ptrdiff_t *at; // 0, 1, ... of channels
	Ending ending; // of a result samples x out x height x width without an end, or samples x height x width x out where the source has its channels last
	size_t out, height, width;
} Winograd;

size_t winograd_panels(const Winograd *g);
size_t winograd_panel_floats(const Winograd *g);

// winograd_pack does one panel, and winograd_part some squares of the result for some panels.
void winograd_pack(void *winograd, size_t panel);
size_t winograd_parts(const Winograd *g);
void winograd_part(void *winograd, size_t part);

// The gradient of a convolution by its weights.
typedef struct WinogradKernel {
	const Tile *tile;
	Memory *memory;
	Field source, dy; // of 2 tiles + 2 and of 2 tiles rows and columns
	float *sums;
	float *dw; // out x channels x 9
} WinogradKernel;

size_t winograd_kernel_floats(const WinogradKernel *g);

// winograd_kernel_part sums over some squares for some channels, and winograd_kernel_end adds these sums up.
size_t winograd_kernel_parts(const WinogradKernel *g);
void winograd_kernel_part(void *winograd, size_t part);
size_t winograd_kernel_ends(const WinogradKernel *g);
void winograd_kernel_end(void *winograd, size_t part);

#endif
