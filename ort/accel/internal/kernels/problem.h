// What the operators of convolve.c have in common: sizes, and memory.
#ifndef NOETHER_KERNELS_PROBLEM_H
#define NOETHER_KERNELS_PROBLEM_H

#include "node.h"
#include "tile.h"

// A problem is a convolution with all its sizes: an image, samples x in x size, with weights, out x in x kernel, has so many places. Along a single
// axis an image is one high.
typedef struct Problem {
	const Window *window;
	const OrtKernelContext *context;
	OrtAllocator *memory;
	const Tile *tile;
	size_t samples, in, out, size[2], kernel[2], places[2];
	int last; // channels are the last axis of images
} Problem;

// make_problem checks that an image and weights fit together.
OrtStatus *make_problem(const Kernel *k, const OrtKernelContext *context, const Tensor *x, const Tensor *w, Problem *p);

// is_result reports whether a tensor is a gradient by the result of a convolution.
int is_result(const Problem *p, const Tensor *dy);

// Memory for a while is one piece, of which parts are taken one after the other, each on cache lines of its own; it is first counted, with no start.
typedef struct Arena {
	char *start;
	size_t used;
} Arena;

void *arena_take(Arena *p, size_t count, size_t size);

// with_memory counts the memory that some work takes, gives it and does the work.
OrtStatus *with_memory(const Problem *p, void (*layout)(void *, Arena *), OrtStatus *(*run)(const Problem *, void *), void *work);

#endif
