//go:build amd64

#include "node.h"

const OrtApi *api;

OrtStatus *invalid_argument(const char *what) { return api->CreateStatus(ORT_INVALID_ARGUMENT, what); }

int release_status(OrtStatus *s) {
	if (s != NULL)
		api->ReleaseStatus(s);
	return s != NULL;
}

OrtStatus *tensor_of(const OrtValue *value, Tensor *t) {
	OrtTensorTypeAndShapeInfo *shape;
	TRY(api->GetTensorMutableData((OrtValue *)value, (void **)&t->data));
	TRY(api->GetTensorTypeAndShape(value, &shape));
	OrtStatus *s = api->GetDimensionsCount(shape, &t->axes);
	if (s == NULL)
		s = t->axes > MAX_AXES ? invalid_argument("a tensor has more than 16 axes") : api->GetDimensions(shape, t->dims, t->axes);
	if (s == NULL)
		s = api->GetTensorShapeElementCount(shape, &t->count);
	api->ReleaseTensorTypeAndShapeInfo(shape);
	return s;
}

OrtStatus *read_tensor(OrtKernelContext *context, size_t i, Tensor *t) {
	const OrtValue *value;
	TRY(api->KernelContext_GetInput(context, i, &value));
	*t = (Tensor){0};
	return value == NULL ? NULL : tensor_of(value, t);
}

OrtStatus *read_image(const Kernel *k, OrtKernelContext *context, size_t i, Tensor *t) {
	TRY(read_tensor(context, i, t));
	if (!k->kind->nhwc || t->axes < 3)
		return NULL;
	const int64_t channels = t->dims[t->axes - 1];
	for (size_t a = t->axes - 1; a > 1; a--)
		t->dims[a] = t->dims[a - 1];
	t->dims[1] = channels;
	return NULL;
}

OrtStatus *output(OrtKernelContext *context, size_t i, const int64_t *dims, size_t axes, float **data) {
	OrtValue *value;
	TRY(api->KernelContext_GetOutput(context, i, dims, axes, &value));
	*data = NULL;
	return value == NULL ? NULL : api->GetTensorMutableData(value, (void **)data);
}

OrtStatus *parallel(const OrtKernelContext *context, void (*part)(void *, size_t), size_t parts, void *work) {
	if (parts > 1)
		return api->KernelContext_ParallelFor(context, part, parts, 0, work);
	if (parts == 1)
		part(work, 0);
	return NULL;
}

int64_t read_int(const OrtKernelInfo *info, const char *name) {
	int64_t value = 0;
	release_status(api->KernelInfoGetAttribute_int64(info, name, &value));
	return value;
}

// read_ints reads a list of at most max integers. count is 0 if the attribute is absent.
static OrtStatus *read_ints(const OrtKernelInfo *info, const char *name, int64_t *list, size_t max, size_t *count) {
	*count = max;
	if (release_status(api->KernelInfoGetAttributeArray_int64(info, name, NULL, count))) {
		*count = 0;
		return NULL;
	}
	if (*count > max)
		return invalid_argument("a convolution has more than two axes");
	return api->KernelInfoGetAttributeArray_int64(info, name, list, count);
}

OrtStatus *read_window(const OrtKernelInfo *info, Window *w) {
	int64_t strides[2], dilations[2], pads[4], output_padding[2] = {0}, kernel[2] = {0};
	size_t n, dilation_count, pad_count, count;
	TRY(read_ints(info, "strides", strides, 2, &n));
	TRY(read_ints(info, "dilations", dilations, 2, &dilation_count));
	TRY(read_ints(info, "pads", pads, 4, &pad_count));
	TRY(read_ints(info, "output_padding", output_padding, 2, &count));
	TRY(read_ints(info, "kernel_shape", kernel, 2, &count));
	if (dilation_count != n || pad_count != 2 * n)
		return invalid_argument("strides, dilations and pads of a convolution differ in number");
	*w = (Window){.stride = {1, 1}, .dilation = {1, 1}, .kernel = {1, 1}, .axes = n, .lanes = read_int(info, "lanes")};
	for (size_t i = 0; i < n; i++) {
		const size_t axis = i + 2 - n;
		if (strides[i] < 1 || dilations[i] < 1 || pads[i] < 0 || pads[n + i] < 0 || output_padding[i] < 0 || kernel[i] < 0)
			return invalid_argument("strides and dilations of a convolution must be at least 1, and pads at least 0");
		w->stride[axis] = strides[i];
		w->dilation[axis] = dilations[i];
		w->before[axis] = pads[i];
		w->after[axis] = pads[n + i];
		w->output_padding[axis] = output_padding[i];
		w->kernel[axis] = kernel[i];
	}
	return NULL;
}
