//go:build amd64

#include "problem.h"

OrtStatus *make_problem(const Kernel *k, const OrtKernelContext *context, const Tensor *x, const Tensor *w, Problem *p) {
	const Window *window = &k->window;
	const size_t n = window->axes; // number of spatial axes, 1 or 2
	if (n == 0 || x->axes != n + 2 || w->axes != n + 2)
		return invalid_argument("the input, weights and strides of a convolution have different numbers of axes");
	if (x->dims[1] != w->dims[1])
		return invalid_argument("the input of a convolution has another number of channels than its weights");
	*p = (Problem){window, context, k->allocator, x->dims[0], x->dims[1], w->dims[0], {1, 1}, {1, 1}, {1, 1}};
	for (size_t i = 2 - n; i < 2; i++) {
		p->input[i] = x->dims[i + n];
		p->kernel[i] = w->dims[i + n];
		const size_t padded = p->input[i] + window->before[i] + window->after[i];
		if (p->kernel[i] == 0 || (p->kernel[i] - 1) * window->dilation[i] >= padded)
			return invalid_argument("the kernel of a convolution is empty or larger than the padded input");
		p->output[i] = (padded - (p->kernel[i] - 1) * window->dilation[i] - 1) / window->stride[i] + 1;
	}
	return NULL;
}

OrtStatus *check_output_gradient(const Problem *p, const Tensor *dy) {
	const size_t n = p->window->axes;
	int same = dy->axes == n + 2 && (size_t)dy->dims[0] == p->samples && (size_t)dy->dims[1] == p->out;
	for (size_t i = 2 - n; i < 2; i++)
		same = same && (size_t)dy->dims[i + n] == p->output[i];
	return same ? NULL : invalid_argument("a gradient has another shape than the result of its convolution");
}

void *arena_alloc(Arena *a, size_t count, size_t size) {
	void *at = a->start == NULL ? NULL : a->start + a->used;
	a->used += (count * size + 63) & ~(size_t)63;
	return at;
}

OrtStatus *with_arena(const Problem *p, void (*layout)(void *, Arena *), OrtStatus *(*run)(const Problem *, void *), void *work) {
	Arena arena = {0};
	layout(work, &arena);
	void *start;
	TRY(api->AllocatorAlloc(p->allocator, arena.used + 64, &start)); // 64: to align the start
	arena = (Arena){(char *)(((uintptr_t)start + 63) & ~(uintptr_t)63), 0};
	layout(work, &arena);
	OrtStatus *s = run(p, work), *freed = api->AllocatorFree(p->allocator, start);
	if (s == NULL)
		return freed;
	release_status(freed);
	return s;
}

void *scratch_alloc(Scratch *s, size_t bytes) {
	void *p = NULL;
	if (release_status(api->AllocatorAlloc(s->allocator, bytes, &p)))
		s->failed = 1;
	return p;
}

void scratch_free(Scratch *s, void *p) { release_status(api->AllocatorFree(s->allocator, p)); }

OrtStatus *scratch_status(const Scratch *s) { return s->failed ? api->CreateStatus(ORT_FAIL, "out of memory for a convolution") : NULL; }
