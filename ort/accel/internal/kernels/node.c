#include "node.h"

const OrtApi *api;

OrtStatus *invalid_argument(const char *what) { return api->CreateStatus(ORT_INVALID_ARGUMENT, what); }

OrtStatus *tensor_of(const OrtValue *value, Tensor *t) {
	OrtTensorTypeAndShapeInfo *shape;
	TRY(api->GetTensorMutableData((OrtValue *)value, (void **)&t->data));
	TRY(api->GetTensorTypeAndShape(value, &shape));
	OrtStatus *s = api->GetDimensionsCount(shape, &t->axes);
	if (s == NULL)
		s = t->axes > AXES ? invalid_argument("a tensor has more than 16 axes") : api->GetDimensions(shape, t->dims, t->axes);
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
	if (!k->kind->last || t->axes < 3)
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

OrtStatus *image_output(const Kernel *k, OrtKernelContext *context, const int64_t *dims, size_t axes, float **data) {
	int64_t moved[AXES];
	for (size_t a = 0; a < axes; a++)
		moved[a] = dims[k->kind->last && a > 0 ? a % (axes - 1) + 1 : a];
	return output(context, 0, moved, axes, data);
}

OrtStatus *parallel(const OrtKernelContext *context, void (*part)(void *, size_t), size_t parts, void *work) {
	if (parts > 1)
		return api->KernelContext_ParallelFor(context, part, parts, 0, work);
	if (parts == 1)
		part(work, 0);
	return NULL;
}

// read_ints reads a list of at most so many integers. count is 0 where the attribute is absent.
static OrtStatus *read_ints(const OrtKernelInfo *info, const char *name, int64_t *list, size_t most, size_t *count) {
	*count = most;
	OrtStatus *s = api->KernelInfoGetAttributeArray_int64(info, name, NULL, count);
	if (s != NULL) {
		api->ReleaseStatus(s);
		*count = 0;
		return NULL;
	}
	if (*count > most)
		return invalid_argument("a convolution has more than two axes");
	return api->KernelInfoGetAttributeArray_int64(info, name, list, count);
}

OrtStatus *read_window(const OrtKernelInfo *info, Window *w) {
	int64_t strides[2], dilations[2], pads[4], extra[2] = {0}, kernel[2] = {0}, lanes = 0;
	size_t n, other, twice, count;
	TRY(read_ints(info, "strides", strides, 2, &n));
	TRY(read_ints(info, "dilations", dilations, 2, &other));
	TRY(read_ints(info, "pads", pads, 4, &twice));
	TRY(read_ints(info, "output_padding", extra, 2, &count));
	TRY(read_ints(info, "kernel_shape", kernel, 2, &count));
	if (other != n || twice != 2 * n)
		return invalid_argument("strides, dilations and pads of a convolution differ in number");
	OrtStatus *s = api->KernelInfoGetAttribute_int64(info, "lanes", &lanes);
	if (s != NULL) // absent
		api->ReleaseStatus(s);
	*w = (Window){.stride = {1, 1}, .dilation = {1, 1}, .kernel = {1, 1}, .axes = n, .lanes = lanes};
	for (size_t i = 0; i < n; i++) {
		const size_t axis = i + 2 - n;
		if (strides[i] < 1 || dilations[i] < 1 || pads[i] < 0 || pads[n + i] < 0 || extra[i] < 0 || kernel[i] < 0)
			return invalid_argument("strides and dilations of a convolution are at least 1, and pads at least 0");
		w->stride[axis] = strides[i];
		w->dilation[axis] = dilations[i];
		w->before[axis] = pads[i];
		w->after[axis] = pads[n + i];
		w->output_padding[axis] = extra[i];
		w->kernel[axis] = kernel[i];
	}
	return NULL;
}
