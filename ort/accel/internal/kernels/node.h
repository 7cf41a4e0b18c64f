// A node of a graph as the engine creates it, and access to its attributes and tensors.
#ifndef NOETHER_KERNELS_NODE_H
#define NOETHER_KERNELS_NODE_H

#include "adam.h"
#include "onnxruntime_c_api.h"

enum { AXES = 16 };

struct Kernel;

// A Kind describes an operator.
typedef struct Kind {
	OrtCustomOp op; // first: the engine's pointer to it is one to the Kind
	const char *name;
	int inputs, needed, outputs;
	int optional; // outputs may be left out
	int last;     // images have their channels last
	// prepare computes once what depends on constant inputs alone.
	OrtStatus *(*prepare)(const OrtKernelInfo *info, struct Kernel *kernel);
} Kind;

// A Window says how a kernel slides over the height and width of an image.
typedef struct Window {
	size_t stride[2], dilation[2], before[2], after[2], output_padding[2];
	size_t kernel[2]; // of a kernel gradient
	int axes;         // that the attributes have; 0: there are no attributes
	int lanes;
} Window;

// A Kernel is a node of a graph.
typedef struct Kernel {
	const Kind *kind;
	AdamConstants adam;
	Window window;
	int relu, side;
	OrtAllocator *memory;
	void *prepared; // memory of panels
	float *panels;  // transformed constant weights, or NULL
} Kernel;

// A Tensor is an input; data is NULL where it is left out.
typedef struct Tensor {
	const float *data;
	int64_t dims[AXES];
	size_t axes, count;
} Tensor;

extern const OrtApi *api;

#define TRY(call)                      \
	do {                           \
		OrtStatus *s = (call); \
		if (s != NULL)         \
			return s;      \
	} while (0)

OrtStatus *invalid_argument(const char *what);

// tensor_of returns the elements and the shape of a value.
OrtStatus *tensor_of(const OrtValue *value, Tensor *t);

// read_tensor returns the i-th input.
OrtStatus *read_tensor(OrtKernelContext *context, size_t i, Tensor *t);

// read_image is read_tensor for an image. Its channels are moved to the second axis of dims where they are last.
OrtStatus *read_image(const Kernel *k, OrtKernelContext *context, size_t i, Tensor *t);

// output returns the memory of the i-th output, NULL where it is left out.
OrtStatus *output(OrtKernelContext *context, size_t i, const int64_t *dims, size_t axes, float **data);

// image_output is output 0 for an image, with the channels in the second axis of dims.
OrtStatus *image_output(const Kernel *k, OrtKernelContext *context, const int64_t *dims, size_t axes, float **data);

// parallel executes the parts of some work on the engine's threads.
OrtStatus *parallel(const OrtKernelContext *context, void (*part)(void *, size_t), size_t parts, void *work);

// read_window reads the attributes of a convolution.
OrtStatus *read_window(const OrtKernelInfo *info, Window *w);

// The operators of convolve.c, and the preparation of those with constant weights.
OrtStatus *prepare_convolution(const OrtKernelInfo *info, Kernel *kernel);
OrtStatus *prepare_input_gradient(const OrtKernelInfo *info, Kernel *kernel);
OrtStatus *ORT_API_CALL compute_convolution(void *kernel, OrtKernelContext *context);
OrtStatus *ORT_API_CALL compute_input_gradient(void *kernel, OrtKernelContext *context);
OrtStatus *ORT_API_CALL compute_kernel_gradient(void *kernel, OrtKernelContext *context);

#endif
