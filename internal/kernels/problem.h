// What the operators of convolve.c have in common: sizes, and memory.
#ifndef NOETHER_KERNELS_PROBLEM_H
#define NOETHER_KERNELS_PROBLEM_H

#include "node.h"
#include "tile.h"

// A problem is a convolution with all its sizes: an image, samples x in x size, with weights, out x in x kernel, has so many places. Along a single
// axis an image is one high.
typedef struct Problem {
	const Window *window;
	const Context *context;
	Allocator *memory;
	const Tile *tile;
	size_t samples, in, out, size[2], kernel[2], places[2];
	int last; // channels are the last axis of images
} Problem;

// A tensor that goes in.
typedef struct Tensor {
	const float *data;
	int64_t dims[AXES];
	size_t axes, count;
} Tensor;

Status *take(Context *context, size_t i, Tensor *t);

// take_picture is take for an image, whose channels become the second axis of its dims; give gives a result with such dims.
Status *take_picture(const Kernel *k, Context *context, size_t i, Tensor *t);
Status *give(const Kernel *k, Context *context, const int64_t *dims, size_t axes, float **data);

// problem fits an image and weights together.
Status *problem(const Kernel *k, const Context *context, const Tensor *x, const Tensor *w, Problem *p);

// fits reports whether a tensor is a gradient by the result of a convolution.
int fits(const Problem *p, const Tensor *dy);

// Memory for a while is one piece, of which parts are taken one after the other, each on cache lines of its own; it is first counted, with no start.
typedef struct Piece {
	char *start;
	size_t used;
} Piece;

void *part_of(Piece *p, size_t count, size_t size);

// with_memory counts the memory that some work takes, gives it and does the work.
Status *with_memory(const Problem *p, void (*lay)(void *, Piece *), Status *(*run)(const Problem *, void *), void *work);

#endif
