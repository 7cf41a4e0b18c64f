// What nodes of our own ask of the engine.
#ifndef NOETHER_KERNELS_NODE_H
#define NOETHER_KERNELS_NODE_H

#include "abi.h"
#include "update.h"

enum { MOST = 3, AXES = 16 };

struct Kernel;

// What an operator is: how many tensors go in, of which the first so many always, and come out, and which input's shape an output has
// where it has that of one.
typedef struct Kind {
	Operator op; // first, so that the engine's pointer to it is one to the whole
	const char *name;
	int inputs, needed, outputs, like[MOST];
	// Of an update: inputs are p, g, so many arrays that it remembers, and so many rates.
	int memory, rates;
	int last; // channels are the last axis of images
	// prepare does once what constant tensors allow.
	Status *(*prepare)(const Info *info, struct Kernel *kernel);
	Update (*update)(void);
} Kind;

// A window is how a kernel slides over an image's height and width.
typedef struct Window {
	size_t stride[2], dilation[2], before[2], after[2];
	int axes; // of the attributes; 0: there were none
	int lanes;
} Window;

// A kernel is a node of a graph.
typedef struct Kernel {
	const Kind *kind;
	Constants constants;
	float epsilon;
	Update update;
	Window window;
	int relu, side;
	Allocator *memory;
	void *prepared; // memory of panels
	float *panels;  // of weights that are constant, transformed; NULL: there are none
} Kernel;

extern const Api *api;

#define TRY(call)                  \
	do {                       \
		Status *s = (call); \
		if (s != NULL)     \
			return s;  \
	} while (0)

Status *wrong(const char *what);

// content gives the elements of a tensor and their shape.
Status *content(const Value *value, const float **data, int64_t *dims, size_t *axes, size_t *count);

// input gives the elements of an input, NULL where it is left out, and their shape.
Status *input(Context *context, size_t i, const float **data, int64_t *dims, size_t *axes, size_t *count);
// output gives the memory of an output, NULL where it is left out.
Status *output(Context *context, size_t i, const int64_t *dims, size_t axes, float **data);

// parallel does the parts of some work, side by side where there are several.
Status *parallel(const Context *context, void (*part)(void *, size_t), size_t parts, void *work);

// read_window reads a node's attributes.
Status *read_window(const Info *info, Window *w);

// The operators of convolve.c, and what is done once for those whose weights are constant.
Status *prepare_convolution(const Info *info, Kernel *kernel);
Status *prepare_input_gradient(const Info *info, Kernel *kernel);
Status *CALL compute_convolution(void *kernel, Context *context);
Status *CALL compute_input_gradient(void *kernel, Context *context);
Status *CALL compute_kernel_gradient(void *kernel, Context *context);

#endif
