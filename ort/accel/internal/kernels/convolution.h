// Convolutions as sums over channels and taps: the package comment has the formulas. Each function of a part does a part of the work, and parts of
// one kind do not depend on one another.
#ifndef NOETHER_KERNELS_CONVOLUTION_H
#define NOETHER_KERNELS_CONVOLUTION_H

#include <stddef.h>

#include "tile.h"

// A map is an image of some channels for each sample, with what lies around it: place (y, x) of a plane is at row y + top and column x + left of
// rows x columns. What is outside of the image is 0; top and left may be below 0, and what is outside of the plane is left out.
typedef struct Map {
	const float *data; // samples x channels x height x width
	size_t samples, channels, height, width;
	ptrdiff_t top, left;
	size_t rows, columns;
	float *plane; // samples x channels x rows x columns; data itself where they are the same
	int last;     // channels are the last axis of data and plane
} Map;

// map_whole reports whether nothing is around an image, and nothing left out.
int map_whole(const Map *m);

// map_part fills one plane of samples x channels, or that of a sample where its channels are last.
size_t map_parts(const Map *m);
void map_part(void *map, size_t part);

// A gather gives each place of a target a sum over the channels and some places of a source:
//
//	y[n, c, first + i step] = bias[c] + sum over s, k < taps of w[c, s, tap[k]] plane[n, s, i stride + at[k]]
//
// with w out x channels x size, or channels x out x size where it is backward; i and stride count along two axes.
typedef struct Gather {
	const Tile *tile;
	Map source;
	const float *w, *bias; // no bias: NULL
	size_t size, taps;
	int backward;
	const size_t *tap;
	ptrdiff_t *at;    // of channels x taps: those of the first channel, then of the next; of taps x channels where these are last
	float *panels;    // of w: panel x channels x taps x rows; taps x channels where the source has its channels last
	int prepared;     // panels are filled
	Ending ending;    // of a result samples x out x height x width without an end, or samples x height x width x out where the source has its channels last
	size_t out, height, width;
	size_t first[2], step[2], places[2], stride[2];
	size_t group;     // so many samples are done at once
} Gather;

size_t gather_panels(const Gather *g);
size_t gather_panel_floats(const Gather *g);

// gather_pack does one panel, and gather_part as many samples as are a group by one panel.
void gather_pack(void *gather, size_t panel);
size_t gather_parts(const Gather *g);
void gather_part(void *gather, size_t part);

// The gradient of a convolution by its kernel:
//
//	dw[o, c, k] = sum over n, i of dy[n, o, i] plane[n, c, i stride + at[k]]
typedef struct KernelSum {
	const Tile *tile;
	Map source;
	const float *dy; // samples x out x places
	size_t out, places[2], stride[2], taps;
	const ptrdiff_t *at;
	float *panels; // of dy: panel x samples x places x rows
	float *dw;     // out x channels x taps
} KernelSum;

size_t kernel_panels(const KernelSum *k);

// kernel_pack does one sample of one panel, and kernel_part some columns, channels x taps, by one panel.
size_t kernel_packs(const KernelSum *k);
void kernel_pack(void *kernel, size_t part);
size_t kernel_parts(const KernelSum *k);
void kernel_part(void *kernel, size_t part);

#endif
