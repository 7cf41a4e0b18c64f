// The sizes of a convolution, and memory that is freed at the end of a run.
#ifndef NOETHER_KERNELS_PROBLEM_H
#define NOETHER_KERNELS_PROBLEM_H

#include "node.h"

// A Problem holds the sizes of a convolution: x is samples x in x input, the weights are out x in x
// kernel, and the result is samples x out x output, where in and out are numbers of channels, and
// input, kernel and output are heights and widths. With one spatial axis, heights are 1.
typedef struct Problem {
	const Window *window; // strides, dilations and padding
	const OrtKernelContext *context;
	OrtAllocator *allocator;
	size_t samples, in, out, input[2], kernel[2], output[2];
} Problem;

// make_problem sets the sizes, and checks that the input x and the weights w fit together. k is the
// node of the graph: ONNX Runtime calls it a kernel.
OrtStatus *make_problem(const Kernel *k, const OrtKernelContext *context, const Tensor *x, const Tensor *w, Problem *p);

// check_output_gradient checks the shape of dy, the gradient with respect to a convolution's
// result.
OrtStatus *check_output_gradient(const Problem *p, const Tensor *dy);

// An Arena is one allocation that is divided in order; each piece is aligned to a cache line, of 64
// bytes. If start is NULL, only the size is counted.
typedef struct Arena {
	char *start;
	size_t used;
} Arena;

// arena_alloc takes a piece for count elements of size bytes.
void *arena_alloc(Arena *a, size_t count, size_t size);

// with_arena calls layout to count the memory that it takes from an arena, allocates that memory,
// calls layout again to divide it, and then calls run. work is the argument of both.
OrtStatus *with_arena(const Problem *p, void (*layout)(void *, Arena *), OrtStatus *(*run)(const Problem *, void *), void *work);

// A Scratch allocates memory that a thread needs for its part of a convolution. All threads of a
// convolution share one.
typedef struct Scratch {
	OrtAllocator *allocator;
	int failed;
} Scratch;

// scratch_alloc returns NULL and sets failed if there is no memory; scratch_status then returns an
// error.
void *scratch_alloc(Scratch *s, size_t bytes);
void scratch_free(Scratch *s, void *p);
OrtStatus *scratch_status(const Scratch *s);

#endif
