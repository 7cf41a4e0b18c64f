#include "problem.h"

OrtStatus *make_problem(const Kernel *k, const OrtKernelContext *context, const Tensor *x, const Tensor *w, Problem *p) {
	const size_t n = k->window.axes;
	if (n == 0 || x->axes != n + 2 || w->axes != n + 2)
		return invalid_argument("an image, the weights and the strides of a convolution have different axes");
	if (x->dims[1] != w->dims[1])
		return invalid_argument("an image has other channels than the weights of its convolution");
	*p = (Problem){&k->window, context, k->memory, tile_of(k->window.lanes), x->dims[0], x->dims[1], w->dims[0], {1, 1}, {1, 1}, {1, 1}, k->kind->last};
	for (size_t i = 2 - n; i < 2; i++) {
		p->size[i] = x->dims[i + n];
		p->kernel[i] = w->dims[i + n];
		const size_t room = p->size[i] + k->window.before[i] + k->window.after[i];
		if (p->kernel[i] == 0 || (p->kernel[i] - 1) * k->window.dilation[i] >= room)
			return invalid_argument("a kernel is larger than the image with its padding, or has no taps");
		p->places[i] = (room - (p->kernel[i] - 1) * k->window.dilation[i] - 1) / k->window.stride[i] + 1;
	}
	return NULL;
}

int is_result(const Problem *p, const Tensor *dy) {
	const size_t n = p->window->axes;
	int same = dy->axes == n + 2 && (size_t)dy->dims[0] == p->samples && (size_t)dy->dims[1] == p->out;
	for (size_t i = 2 - n; i < 2; i++)
		same = same && (size_t)dy->dims[i + n] == p->places[i];
	return same;
}

void *arena_take(Arena *p, size_t count, size_t size) {
	void *at = p->start == NULL ? NULL : p->start + p->used;
	p->used += (count * size + 63) & ~(size_t)63;
	return at;
}

OrtStatus *with_memory(const Problem *p, void (*layout)(void *, Arena *), OrtStatus *(*run)(const Problem *, void *), void *work) {
	Arena arena = {0};
	layout(work, &arena);
	void *start;
	TRY(api->AllocatorAlloc(p->memory, arena.used + 64, &start));
	arena = (Arena){(char *)(((uintptr_t)start + 63) & ~(uintptr_t)63), 0};
	layout(work, &arena);
	OrtStatus *s = run(p, work), *freed = api->AllocatorFree(p->memory, start);
	if (s != NULL && freed != NULL)
		api->ReleaseStatus(freed);
	return s != NULL ? s : freed;
}
