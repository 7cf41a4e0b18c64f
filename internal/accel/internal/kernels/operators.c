//go:build amd64

#include "operators.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "batchnorm.h"
#include "microkernel.h"
#include "node.h"

static OrtCustomOpDomain *domain;

// A part of an update by Adam, which one thread computes, has BLOCK elements. This number does not
// depend on the number of threads, and so the results do not either.
enum { BLOCK = 1 << 14 };

typedef struct AdamWork {
	const AdamConstants *constants;
	AdamArrays arrays;
	size_t count;
} AdamWork;

static void adam_block(void *data, size_t block) {
	const AdamWork *w = data;
	adam_update(w->constants, &w->arrays, block * BLOCK, min_size((block + 1) * BLOCK, w->count));
}

static OrtStatus *ORT_API_CALL compute_adam(void *kernel, OrtKernelContext *context) {
	AdamWork w = {.constants = &((const Kernel *)kernel)->adam};
	Tensor p, other;
	TRY(read_tensor(context, 0, &p));
	w.arrays.p = p.data;
	w.count = p.count;
	const float **arrays[] = {&w.arrays.g, &w.arrays.m, &w.arrays.v};
	for (int i = 0; i < 3; i++) {
		TRY(read_tensor(context, 1 + i, &other));
		if (other.count != w.count)
			return invalid_argument("a gradient or a moment of an update differs in size from its parameter");
		*arrays[i] = other.data;
	}
	for (int i = 0; i < 3; i++) {
		TRY(read_tensor(context, 4 + i, &other));
		if (other.count != 1)
			return invalid_argument("the step size, epsilon or decay factor of an update has more than one element");
		w.arrays.rates[i] = *other.data;
	}
	float **results[] = {&w.arrays.next_p, &w.arrays.next_m, &w.arrays.next_v};
	for (int i = 0; i < 3; i++)
		TRY(output(context, i, p.dims, p.axes, results[i]));
	return parallel(context, adam_block, ceil_div(w.count, BLOCK), &w);
}

// read_batch reads the inputs of a BatchNormalization into b: feature maps x, the input of index
// maps, and vectors with an element for each channel, the inputs of index first and following.
static OrtStatus *read_batch(const Kernel *k, OrtKernelContext *context, size_t maps, size_t first, const float **vectors[], size_t count, Tensor *x, BatchNorm *b) {
	TRY(read_tensor(context, maps, x));
	if (x->axes < 2)
		return invalid_argument("the input of a normalization has fewer than two axes");
	*b = (BatchNorm){.samples = x->dims[0], .channels = x->dims[1], .pixels = 1, .x = x->data, .epsilon = k->epsilon, .relu = k->relu};
	for (size_t i = 2; i < x->axes; i++)
		b->pixels *= x->dims[i];
	for (size_t i = 0; i < count; i++) {
		Tensor v;
		TRY(read_tensor(context, first + i, &v));
		if (v.count != b->channels)
			return invalid_argument("a normalization has other numbers of channels in its input and in its vectors");
		*vectors[i] = v.data;
	}
	return NULL;
}

// read_map reads input i, feature maps of the shape of x. *data is NULL if the input is left out.
static OrtStatus *read_map(OrtKernelContext *context, size_t i, const Tensor *x, const float **data) {
	Tensor t;
	TRY(read_tensor(context, i, &t));
	*data = t.data;
	return t.data == NULL || t.count == x->count ? NULL : invalid_argument("the tensors of a normalization differ in size");
}

static OrtStatus *ORT_API_CALL compute_batch_norm(void *kernel, OrtKernelContext *context) {
	BatchNorm b;
	Tensor x;
	TRY(read_batch(kernel, context, 0, 1, (const float **[]){&b.scale, &b.bias}, 2, &x, &b));
	TRY(read_map(context, 3, &x, &b.addend));
	TRY(output(context, 0, x.dims, x.axes, &b.y));
	TRY(output(context, 1, x.dims + 1, 1, &b.mean));
	TRY(output(context, 2, x.dims + 1, 1, &b.variance));
	return parallel(context, batch_norm_part, batch_norm_parts(&b), &b);
}

// compute_batch_norm_gradient computes the gradients dx by x, from the gradient dy by the result.
// Where the optional mask is not positive, dy counts as 0; masked is dy after that. sum and along
// are the sums of masked and of masked (x - mean) over a channel.
static OrtStatus *ORT_API_CALL compute_batch_norm_gradient(void *kernel, OrtKernelContext *context) {
	BatchNorm b;
	Tensor x;
	TRY(read_batch(kernel, context, 1, 2, (const float **[]){&b.scale, (const float **)&b.mean, (const float **)&b.variance}, 3, &x, &b));
	TRY(read_map(context, 0, &x, &b.dy));
	TRY(read_map(context, 5, &x, &b.mask));
	TRY(output(context, 0, x.dims, x.axes, &b.dx));
	TRY(output(context, 1, x.dims + 1, 1, &b.sum));
	TRY(output(context, 2, x.dims + 1, 1, &b.along));
	TRY(output(context, 3, x.dims, x.axes, &b.masked));
	return parallel(context, batch_norm_gradient_part, batch_norm_parts(&b), &b);
}

// A LayoutChange transposes x, samples x rows x columns, to y, samples x columns x rows. From NCHW,
// rows are channels and columns the positions of a feature map; to NCHW, it is the other way round.
typedef struct LayoutChange {
	const float *x;
	float *y;
	size_t rows, columns;
} LayoutChange;

// A part of the work transposes PART_ROWS rows of a sample, a cache line of columns at a time.
enum { PART_ROWS = 64, PART_COLUMNS = 16 };

static void layout_part(void *work, size_t part) {
	const LayoutChange *t = work;
	const size_t parts = ceil_div(t->rows, PART_ROWS), start = part / parts * t->rows * t->columns, row = part % parts * PART_ROWS;
	const float *src = t->x + start + row * t->columns;
	for (size_t c = 0; c < t->columns; c += PART_COLUMNS)
		transpose(src + c, t->columns, t->y + start + row + c * t->rows, t->rows, min_size(PART_ROWS, t->rows - row),
			min_size(PART_COLUMNS, t->columns - c));
}

static OrtStatus *ORT_API_CALL compute_layout(void *kernel, OrtKernelContext *context) {
	const int to_nhwc = ((const Kernel *)kernel)->kind->nhwc;
	Tensor x;
	TRY(read_tensor(context, 0, &x));
	if (x.axes < 2)
		return invalid_argument("a tensor with channels has fewer than two axes");
	int64_t dims[MAX_AXES] = {x.dims[0]};
	LayoutChange t = {.x = x.data, .rows = 1, .columns = 1};
	// After the samples, the axes of the result are axes 2, 3, ..., 1 of x or, in the other direction,
	// the last axis, then 1, 2, ...
	for (size_t i = 1; i < x.axes; i++) {
		dims[i] = x.dims[to_nhwc ? i % (x.axes - 1) + 1 : (i + x.axes - 3) % (x.axes - 1) + 1];
		*((to_nhwc ? i == 1 : i < x.axes - 1) ? &t.rows : &t.columns) *= x.dims[i];
	}
	TRY(output(context, 0, dims, x.axes, &t.y));
	return x.count == 0 ? NULL : parallel(context, layout_part, x.dims[0] * ceil_div(t.rows, PART_ROWS), &t);
}

static void ORT_API_CALL destroy(void *kernel) {
	Kernel *k = kernel;
	if (k->prepared != NULL)
		release_status(api->AllocatorFree(k->allocator, k->prepared));
	api->ReleaseAllocator(k->allocator);
	free(k);
}

// read_float returns an attribute of a node, or 0 if it is absent.
static float read_float(const OrtKernelInfo *info, const char *name) {
	float value = 0;
	release_status(api->KernelInfoGetAttribute_float(info, name, &value));
	return value;
}

static OrtStatus *ORT_API_CALL create(const OrtCustomOp *op, const OrtApi *a, const OrtKernelInfo *info, void **kernel) {
	(void)a;
	if (vector_width() == 0)
		return invalid_argument("the native operators need AVX2, which this processor lacks");
	Kernel *k = calloc(1, sizeof *k);
	if (k == NULL)
		return invalid_argument("out of memory for an operator");
	k->kind = (const Kind *)op;
	k->adam = (AdamConstants){read_float(info, "beta1"), read_float(info, "beta2")};
	k->epsilon = read_float(info, "epsilon");
	OrtStatus *s = read_window(info, &k->window);
	k->relu = read_int(info, "relu") != 0;
	k->side = read_int(info, "side") == 4 ? 4 : 2; // of the output tiles of Winograd's algorithm
	if (s == NULL)
		s = api->KernelInfoGetAllocator(info, OrtMemTypeDefault, &k->allocator);
	if (s != NULL) {
		free(k);
		return s;
	}
	if (k->kind->prepare != NULL && (s = k->kind->prepare(info, k)) != NULL) {
		destroy(k);
		return s;
	}
	*kernel = k;
	return NULL;
}

// infer_adam sets the shapes of the results, which are that of the parameter.
static OrtStatus *ORT_API_CALL infer_adam(const OrtCustomOp *op, OrtShapeInferContext *context) {
	(void)op;
	for (size_t i = 0; i < 3; i++) {
		OrtTensorTypeAndShapeInfo *shape; // owned by the context
		TRY(api->ShapeInferContext_GetInputTypeShape(context, 0, &shape));
		size_t axes;
		TRY(api->GetDimensionsCount(shape, &axes));
		if (axes > 0) // 0: the shape is unknown
			TRY(api->ShapeInferContext_SetOutputTypeShape(context, i, shape));
	}
	return NULL;
}

static const char *ORT_API_CALL name_of(const OrtCustomOp *op) { return ((const Kind *)op)->name; }
static const char *ORT_API_CALL provider(const OrtCustomOp *op) {
	(void)op;
	return "CPUExecutionProvider";
}
static ONNXTensorElementDataType ORT_API_CALL element_type(const OrtCustomOp *op, size_t i) {
	(void)op, (void)i;
	return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
}
static size_t ORT_API_CALL input_count(const OrtCustomOp *op) { return ((const Kind *)op)->inputs; }
static size_t ORT_API_CALL output_count(const OrtCustomOp *op) { return ((const Kind *)op)->outputs; }
static OrtCustomOpInputOutputCharacteristic ORT_API_CALL input_characteristic(const OrtCustomOp *op, size_t i) {
	return i < (size_t)((const Kind *)op)->required ? INPUT_OUTPUT_REQUIRED : INPUT_OUTPUT_OPTIONAL;
}
static OrtCustomOpInputOutputCharacteristic ORT_API_CALL output_characteristic(const OrtCustomOp *op, size_t i) {
	(void)i;
	return ((const Kind *)op)->optional_outputs ? INPUT_OUTPUT_OPTIONAL : INPUT_OUTPUT_REQUIRED;
}
static OrtMemType ORT_API_CALL memory_type(const OrtCustomOp *op, size_t i) {
	(void)op, (void)i;
	return OrtMemTypeDefault;
}
static int ORT_API_CALL one(const OrtCustomOp *op) {
	(void)op;
	return 1;
}
static int ORT_API_CALL latest(const OrtCustomOp *op) {
	(void)op;
	return INT_MAX;
}

// adam_in_place lets the outputs share memory with the parameter and its moments, the inputs 0, 2
// and 3.
static size_t ORT_API_CALL adam_in_place(int **from, int **to) {
	*from = malloc(3 * sizeof **from);
	*to = malloc(3 * sizeof **to);
	if (*from == NULL || *to == NULL)
		return 0;
	for (int i = 0; i < 3; i++) {
		(*from)[i] = i == 0 ? 0 : 1 + i;
		(*to)[i] = i;
	}
	return 3;
}
static void ORT_API_CALL release(int *from, int *to) {
	free(from);
	free(to);
}

// OPERATOR sets the fields that all operators have in common.
#define OPERATOR                                                                                                                \
	.version = ORT_API_VERSION, .GetName = name_of, .GetExecutionProviderType = provider, .GetInputType = element_type,          \
	.GetInputTypeCount = input_count, .GetOutputType = element_type, .GetOutputTypeCount = output_count, .KernelDestroy = destroy,         \
	.GetInputCharacteristic = input_characteristic, .GetOutputCharacteristic = output_characteristic, .GetInputMemoryType = memory_type,        \
	.GetVariadicInputMinArity = one, .GetVariadicInputHomogeneity = one, .GetVariadicOutputMinArity = one,                  \
	.GetVariadicOutputHomogeneity = one, .CreateKernelV2 = create, .GetStartVersion = one, .GetEndVersion = latest

// The operators: name, numbers of inputs, of required inputs and of outputs. A Kind begins with the
// OrtCustomOp op, so that ONNX Runtime's pointer to it is a pointer to the Kind. prepare computes
// once what depends only on constant weights; nhwc: channels are last.
static const Kind kinds[] = {
	{{OPERATOR, .KernelComputeV2 = compute_adam, .InferOutputShapeFn = infer_adam, .GetMayInplace = adam_in_place,
		.ReleaseMayInplace = release}, "Adam", 7, 7, 3},
	{{OPERATOR, .KernelComputeV2 = compute_batch_norm}, "BatchNormalization", 4, 3, 3},
	{{OPERATOR, .KernelComputeV2 = compute_batch_norm_gradient}, "BatchNormalizationGradient", 6, 5, 4, .optional_outputs = 1},
	{{OPERATOR, .KernelComputeV2 = compute_conv}, "Conv", 3, 2, 1, .prepare = prepare_conv},
	{{OPERATOR, .KernelComputeV2 = compute_conv_transpose}, "ConvTranspose", 2, 2, 1, .prepare = prepare_conv_transpose},
	{{OPERATOR, .KernelComputeV2 = compute_kernel_gradient}, "ConvKernelGradient", 2, 2, 1},
	{{OPERATOR, .KernelComputeV2 = compute_conv}, "ConvChannelsLast", 5, 2, 4, .nhwc = 1, .optional_outputs = 1,
		.prepare = prepare_conv},
	{{OPERATOR, .KernelComputeV2 = compute_conv_transpose}, "ConvTransposeChannelsLast", 5, 2, 1, .nhwc = 1,
		.prepare = prepare_conv_transpose},
	{{OPERATOR, .KernelComputeV2 = compute_layout}, "ChannelsLast", 1, 1, 1, .nhwc = 1},
	{{OPERATOR, .KernelComputeV2 = compute_layout}, "ChannelsFirst", 1, 1, 1},
};

// message returns the text of an error, NULL for none, and releases the error.
static char *message(OrtStatus *s) {
	if (s == NULL)
		return NULL;
	char *text = strdup(api->GetErrorMessage(s));
	api->ReleaseStatus(s);
	return text;
}

char *kernels_load(const void *table) {
	api = table;
	OrtStatus *s = api->CreateCustomOpDomain("noether", &domain);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds && s == NULL; i++)
		s = api->CustomOpDomain_Add(domain, &kinds[i].op);
	return message(s);
}

char *kernels_register(void *options) { return message(api->AddCustomOpDomain(options, domain)); }
