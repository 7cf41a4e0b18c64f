// The sizes of a convolution, and memory for the time of a run.
#ifndef NOETHER_KERNELS_PROBLEM_H
#define NOETHER_KERNELS_PROBLEM_H

#include "node.h"

// A Problem holds the sizes of a convolution: x is samples x in x input, the weights are out x in x
// kernel, and the result is samples x out x output. With one spatial axis, heights are 1.
typedef struct Problem {
	const Window *window;
	const OrtKernelContext *context;
	OrtAllocator *allocator;
	size_t samples, in, out, input[2], kernel[2], output[2];
} Problem;

// make_problem sets the sizes, and checks that an input and weights fit together.
OrtStatus *make_problem(const Kernel *k, const OrtKernelContext *context, const Tensor *x, const Tensor *w, Problem *p);

// check_output_gradient checks the shape of the gradient with respect to a convolution's result.
OrtStatus *check_output_gradient(const Problem *p, const Tensor *dy);

// An Arena is one allocation that is divided in order; each piece is aligned to a cache line, of 64
// bytes. If start is NULL, only the size is counted.
typedef struct Arena {
	char *start;
	size_t used;
} Arena;

void *arena_alloc(Arena *a, size_t count, size_t size);

// with_arena calls layout to count the memory that it takes from an arena, allocates that memory,
// calls layout again to divide it, and then calls run.
OrtStatus *with_arena(const Problem *p, void (*layout)(void *, Arena *), OrtStatus *(*run)(const Problem *, void *), void *work);

// Scratch allocates memory within a part of some work. Threads share a Scratch.
typedef struct Scratch {
	OrtAllocator *allocator;
	int failed;
} Scratch;

// scratch_alloc returns NULL and sets failed if there is no memory.
void *scratch_alloc(Scratch *s, size_t bytes);
void scratch_free(Scratch *s, void *p);
OrtStatus *scratch_status(const Scratch *s);

#endif
