#include "problem.h"

// read_ints reads a list of at most so many integers; how many there are, 0 where it is absent.
static Status *read_ints(const Info *info, const char *name, int64_t *list, size_t most, size_t *count) {
	*count = most;
	Status *s = KernelInfoGetAttributeArray_int64(api)(info, name, NULL, count);
	if (s != NULL) {
		ReleaseStatus(api)(s);
		*count = 0;
		return NULL;
	}
	return *count > most ? wrong("a convolution slides along more than two axes") : KernelInfoGetAttributeArray_int64(api)(info, name, list, count);
}

Status *read_window(const Info *info, Window *w) {
	int64_t strides[2], dilations[2], pads[4], lanes = 0;
	size_t n, other, twice;
	TRY(read_ints(info, "strides", strides, 2, &n));
	TRY(read_ints(info, "dilations", dilations, 2, &other));
	TRY(read_ints(info, "pads", pads, 4, &twice));
	if (other != n || twice != 2 * n)
		return wrong("strides, dilations and pads of a convolution differ in number");
	Status *s = KernelInfoGetAttribute_int64(api)(info, "lanes", &lanes);
	if (s != NULL) // absent, and so 0
		ReleaseStatus(api)(s);
	w->axes = n;
	w->lanes = lanes;
	for (size_t i = 0; i < 2; i++) {
		w->stride[i] = w->dilation[i] = 1;
		w->before[i] = w->after[i] = 0;
	}
	for (size_t i = 0; i < n; i++) {
		const size_t axis = i + 2 - n;
		if (strides[i] < 1 || dilations[i] < 1 || pads[i] < 0 || pads[n + i] < 0)
			return wrong("strides and dilations of a convolution are at least 1, and pads at least 0");
		w->stride[axis] = strides[i];
		w->dilation[axis] = dilations[i];
		w->before[axis] = pads[i];
		w->after[axis] = pads[n + i];
	}
	return NULL;
}

Status *take(Context *context, size_t i, Tensor *t) { return input(context, i, &t->data, t->dims, &t->axes, &t->count); }

Status *take_picture(const Kernel *k, Context *context, size_t i, Tensor *t) {
	TRY(take(context, i, t));
	if (!k->kind->last || t->axes < 3)
		return NULL;
	const int64_t channels = t->dims[t->axes - 1];
	for (size_t a = t->axes - 1; a > 1; a--)
		t->dims[a] = t->dims[a - 1];
	t->dims[1] = channels;
	return NULL;
}

Status *give(const Kernel *k, Context *context, const int64_t *dims, size_t axes, float **data) {
	int64_t moved[AXES];
	for (size_t a = 0; a < axes; a++)
		moved[a] = dims[k->kind->last && a > 0 ? a % (axes - 1) + 1 : a];
	return output(context, 0, moved, axes, data);
}

Status *problem(const Kernel *k, const Context *context, const Tensor *x, const Tensor *w, Problem *p) {
	const size_t n = k->window.axes;
	if (n == 0 || x->axes != n + 2 || w->axes != n + 2)
		return wrong("an image, the weights and the strides of a convolution have different axes");
	if (x->dims[1] != w->dims[1])
		return wrong("an image has other channels than the weights of its convolution");
	*p = (Problem){&k->window, context, k->memory, tile_of(k->window.lanes), x->dims[0], x->dims[1], w->dims[0], {1, 1}, {1, 1}, {1, 1}, k->kind->last};
	for (size_t i = 2 - n; i < 2; i++) {
		p->size[i] = x->dims[i + n];
		p->kernel[i] = w->dims[i + n];
		const size_t room = p->size[i] + k->window.before[i] + k->window.after[i];
		if (p->kernel[i] == 0 || (p->kernel[i] - 1) * k->window.dilation[i] >= room)
			return wrong("a kernel is larger than the image with its padding, or has no taps");
		p->places[i] = (room - (p->kernel[i] - 1) * k->window.dilation[i] - 1) / k->window.stride[i] + 1;
	}
	return NULL;
}

int fits(const Problem *p, const Tensor *dy) {
	const size_t n = p->window->axes;
	int same = dy->axes == n + 2 && (size_t)dy->dims[0] == p->samples && (size_t)dy->dims[1] == p->out;
	for (size_t i = 2 - n; i < 2; i++)
		same = same && (size_t)dy->dims[i + n] == p->places[i];
	return same;
}

void *part_of(Piece *p, size_t count, size_t size) {
	void *at = p->start == NULL ? NULL : p->start + p->used;
	p->used += (count * size + 63) & ~(size_t)63;
	return at;
}

Status *with_memory(const Problem *p, void (*lay)(void *, Piece *), Status *(*run)(const Problem *, void *), void *work) {
	Piece piece = {0};
	lay(work, &piece);
	void *start;
	TRY(AllocatorAlloc(api)(p->memory, piece.used + 64, &start));
	piece = (Piece){(char *)(((uintptr_t)start + 63) & ~(uintptr_t)63), 0};
	lay(work, &piece);
	Status *s = run(p, work), *freed = AllocatorFree(api)(p->memory, start);
	if (s != NULL && freed != NULL)
		ReleaseStatus(api)(freed);
	return s != NULL ? s : freed;
}
