// Nodes of a graph, and access to their attributes and tensors.
#ifndef NOETHER_KERNELS_NODE_H
#define NOETHER_KERNELS_NODE_H

#include "adam.h"
#include "vendored/onnxruntime_c_api.h"

enum { MAX_AXES = 16 };

struct Kernel;

// A Kind describes an operator.
typedef struct Kind {
	// ONNX Runtime's description: first, so that a pointer to it is a pointer to the Kind.
	OrtCustomOp op;
	const char *name;
	int inputs, required, outputs; // numbers of inputs, required inputs and outputs
	int optional_outputs;          // whether outputs may be left out
	int nhwc;                      // whether images have their channels last
	// prepare computes what depends only on constant inputs, once; NULL: nothing.
	OrtStatus *(*prepare)(const OrtKernelInfo *info, struct Kernel *kernel);
} Kind;

// A Window is the geometry of a convolution along height and width.
typedef struct Window {
	// before and after: padding.
	size_t stride[2], dilation[2], before[2], after[2], output_padding[2];
	size_t kernel[2];                                                      // of ConvKernelGradient
	// Number of axes of the attributes; 0: there are none.
	int axes;
	// See the package comment.
	int lanes;
} Window;

// A Kernel is a node of a graph, as ONNX Runtime calls it: not the kernel of a convolution.
typedef struct Kernel {
	const Kind *kind;
	AdamConstants adam;
	float epsilon; // of a BatchNormalization
	Window window;
	int relu, side; // attributes; see the package comment
	OrtAllocator *allocator;
	void *prepared; // the allocated memory that contains panels, or NULL
	float *panels;  // packed or transformed constant weights, or NULL
} Kernel;

// A Tensor is an input: its elements, shape and number of elements. data is NULL if it is left out.
typedef struct Tensor {
	const float *data;
	int64_t dims[MAX_AXES];
	size_t axes, count;
} Tensor;

extern const OrtApi *api;

// TRY returns from the function if a call returns an error.
#define TRY(call)                      \
	do {                           \
		OrtStatus *s = (call); \
		if (s != NULL)         \
			return s;      \
	} while (0)

OrtStatus *invalid_argument(const char *what);

// release_status reports whether a status is an error, and frees it.
int release_status(OrtStatus *s);

// tensor_of returns the elements and the shape of a value.
OrtStatus *tensor_of(const OrtValue *value, Tensor *t);

// read_tensor returns the i-th input.
OrtStatus *read_tensor(OrtKernelContext *context, size_t i, Tensor *t);

// read_image is read_tensor for images. Channels are axis 1 of dims, whatever the layout.
OrtStatus *read_image(const Kernel *k, OrtKernelContext *context, size_t i, Tensor *t);

// output stores in *data the memory of the i-th output, which has the given shape, or NULL if it is
// left out.
OrtStatus *output(OrtKernelContext *context, size_t i, const int64_t *dims, size_t axes, float **data);

// parallel executes part(work, i) for i < parts on the threads of ONNX Runtime.
OrtStatus *parallel(const OrtKernelContext *context, void (*part)(void *, size_t), size_t parts, void *work);

// read_int returns an integer attribute, 0 if it is absent.
int64_t read_int(const OrtKernelInfo *info, const char *name);

// read_window reads the attributes of a convolution.
OrtStatus *read_window(const OrtKernelInfo *info, Window *w);

// The operators of conv_operators.c, and the preparation of constant weights.
OrtStatus *prepare_conv(const OrtKernelInfo *info, Kernel *kernel);
OrtStatus *prepare_conv_transpose(const OrtKernelInfo *info, Kernel *kernel);
OrtStatus *ORT_API_CALL compute_conv(void *kernel, OrtKernelContext *context);
OrtStatus *ORT_API_CALL compute_conv_transpose(void *kernel, OrtKernelContext *context);
OrtStatus *ORT_API_CALL compute_kernel_gradient(void *kernel, OrtKernelContext *context);

#endif
