#include "node.h"

#include <string.h>

#include "convolution.h"

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

// A problem is a convolution with all its sizes: a picture, samples x in x size, with weights, out x in x kernel, has so many places. Along a single
// axis a picture is one high.
typedef struct Problem {
	const Window *window;
	const Context *context;
	Allocator *memory;
	const Tile *tile;
	size_t samples, in, out, size[2], kernel[2], places[2];
} Problem;

// A tensor that goes in.
typedef struct Tensor {
	const float *data;
	int64_t dims[AXES];
	size_t axes, count;
} Tensor;

static Status *take(Context *context, size_t i, Tensor *t) { return input(context, i, &t->data, t->dims, &t->axes, &t->count); }

static Status *problem(const Kernel *k, const Context *context, const Tensor *x, const Tensor *w, Problem *p) {
	const size_t n = k->window.axes;
	if (n == 0 || x->axes != n + 2 || w->axes != n + 2)
		return wrong("a picture, the weights and the strides of a convolution have different axes");
	if (x->dims[1] != w->dims[1])
		return wrong("a picture has other channels than the weights of its convolution");
	*p = (Problem){&k->window, context, k->memory, tile_of(k->window.lanes), x->dims[0], x->dims[1], w->dims[0], {1, 1}, {1, 1}, {1, 1}};
	for (size_t i = 2 - n; i < 2; i++) {
		p->size[i] = x->dims[i + n];
		p->kernel[i] = w->dims[i + n];
		const size_t room = p->size[i] + k->window.before[i] + k->window.after[i];
		if (p->kernel[i] == 0 || (p->kernel[i] - 1) * k->window.dilation[i] >= room)
			return wrong("a kernel is larger than the picture with its padding, or has no taps");
		p->places[i] = (room - (p->kernel[i] - 1) * k->window.dilation[i] - 1) / k->window.stride[i] + 1;
	}
	return NULL;
}

// fits reports whether a tensor is a gradient by the result of a convolution.
static int fits(const Problem *p, const Tensor *dy) {
	const size_t n = p->window->axes;
	int same = dy->axes == n + 2 && (size_t)dy->dims[0] == p->samples && (size_t)dy->dims[1] == p->out;
	for (size_t i = 2 - n; i < 2; i++)
		same = same && (size_t)dy->dims[i + n] == p->places[i];
	return same;
}

// Memory for a while is one piece, of which parts are taken one after the other, each on cache lines of its own; it is first counted, with no start.
typedef struct Piece {
	char *start;
	size_t used;
} Piece;

static void *part_of(Piece *p, size_t count, size_t size) {
	void *at = p->start == NULL ? NULL : p->start + p->used;
	p->used += (count * size + 63) & ~(size_t)63;
	return at;
}

// with_memory counts the memory that some work takes, gives it and does the work.
static Status *with_memory(const Problem *p, void (*lay)(void *, Piece *), Status *(*run)(const Problem *, void *), void *work) {
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

static void lay_map(Map *m, Piece *piece) {
	m->plane = (float *)m->data;
	if (!map_whole(m))
		m->plane = part_of(piece, m->samples * m->channels * m->rows * m->columns, sizeof(float));
}

static Status *fill(const Problem *p, Map *m) { return map_whole(m) ? NULL : parallel(p->context, map_part, m->samples * m->channels, m); }

// A convolution's picture lies in its padding.
static Map padded(const Problem *p, const float *x) {
	const Window *w = p->window;
	return (Map){x, p->samples, p->in, p->size[0], p->size[1], w->before[0], w->before[1],
		p->size[0] + w->before[0] + w->after[0], p->size[1] + w->before[1] + w->after[1], NULL};
}

static ptrdiff_t plane_of(const Map *m) { return m->rows * m->columns; }

// spread lists the places of the taps of all channels, given those of the first.
static void spread(ptrdiff_t *at, size_t taps, const Map *m) {
	for (size_t i = taps; i < taps * m->channels; i++)
		at[i] = at[i - taps] + plane_of(m);
}

static void taps_forward(const Problem *p, const Map *m, ptrdiff_t *at) {
	for (size_t i = 0; i < p->kernel[0]; i++)
		for (size_t j = 0; j < p->kernel[1]; j++)
			*at++ = i * p->window->dilation[0] * m->columns + j * p->window->dilation[1];
}

// A gather of as many samples at once as have so many places.
enum { TOGETHER = 512 };

static size_t group_of(const size_t places[2]) {
	const size_t each = places[0] * places[1];
	return each == 0 ? 1 : (TOGETHER + each - 1) / each;
}

static void lay_gather(void *work, Piece *piece) {
	Gather *g = work;
	lay_map(&g->source, piece);
	g->at = part_of(piece, g->source.channels * g->size, sizeof *g->at);
	g->tap = part_of(piece, g->size, sizeof *g->tap);
	g->panels = part_of(piece, gather_panels(g) * g->tile->rows * g->source.channels * g->size, sizeof *g->panels);
}

static Status *gathered(const Problem *p, Gather *g) {
	spread(g->at, g->taps, &g->source);
	g->group = group_of(g->places);
	TRY(parallel(p->context, gather_pack, gather_panels(g), g));
	return parallel(p->context, gather_part, gather_parts(g), g);
}

static Status *run_convolution(const Problem *p, void *work) {
	Gather *g = work;
	TRY(fill(p, &g->source));
	taps_forward(p, &g->source, g->at);
	return gathered(p, g);
}

// results is the shape of what a convolution gives.
static void results(const Problem *p, int64_t *dims) {
	const size_t n = p->window->axes;
	dims[0] = p->samples;
	dims[1] = p->out;
	for (size_t i = 2 - n; i < 2; i++)
		dims[i + n] = p->places[i];
}

Status *CALL compute_convolution(void *kernel, Context *context) {
	Tensor x, w, bias;
	TRY(take(context, 0, &x));
	TRY(take(context, 1, &w));
	TRY(take(context, 2, &bias));
	Problem p;
	TRY(problem(kernel, context, &x, &w, &p));
	if (bias.data != NULL && bias.count != p.out)
		return wrong("a convolution's bias has not as many numbers as its result has channels");
	Gather g = {.tile = p.tile, .source = padded(&p, x.data), .w = w.data, .bias = bias.data, .size = p.kernel[0] * p.kernel[1], .taps = p.kernel[0] * p.kernel[1],
		.out = p.out, .height = p.places[0], .width = p.places[1], .step = {1, 1}, .places = {p.places[0], p.places[1]},
		.stride = {p.window->stride[0], p.window->stride[1]}};
	int64_t dims[AXES];
	results(&p, dims);
	TRY(output(context, 0, dims, x.axes, &g.y));
	return g.source.samples == 0 ? NULL : with_memory(&p, lay_gather, run_convolution, &g);
}

// Along an axis, place y of a picture is read by tap k of result i where y = i stride + k dilation - before: with y = first + u stride, by those taps
// for which stride divides first + before - k dilation, at i = u + lead(k).
static int reads(const Problem *p, size_t axis, size_t first, size_t k, ptrdiff_t *lead) {
	const ptrdiff_t stride = p->window->stride[axis], d = (ptrdiff_t)(first + p->window->before[axis]) - (ptrdiff_t)(k * p->window->dilation[axis]);
	*lead = d / stride;
	return d % stride == 0;
}

// Places first, first + stride, ... of an axis of a picture.
static size_t places_from(const Problem *p, size_t axis, size_t first) {
	return first >= p->size[axis] ? 0 : (p->size[axis] - first - 1) / p->window->stride[axis] + 1;
}

// reach is from which result to which the places of a picture are read, along an axis.
static void reach(const Problem *p, size_t axis, ptrdiff_t *low, ptrdiff_t *high) {
	*low = PTRDIFF_MAX;
	*high = PTRDIFF_MIN;
	for (size_t first = 0; first < p->window->stride[axis] && first < p->size[axis]; first++)
		for (size_t k = 0; k < p->kernel[axis]; k++) {
			ptrdiff_t lead;
			if (!reads(p, axis, first, k, &lead))
				continue;
			const ptrdiff_t last = lead + (ptrdiff_t)places_from(p, axis, first) - 1;
			*low = lead < *low ? lead : *low;
			*high = last > *high ? last : *high;
		}
	if (*low > *high)
		*low = *high = 0;
}

// The taps that read the places of a gather.
static void taps_backward(const Problem *p, Gather *g) {
	size_t *tap = (size_t *)g->tap;
	ptrdiff_t down, right;
	g->taps = 0;
	for (size_t i = 0; i < p->kernel[0]; i++)
		for (size_t j = 0; j < p->kernel[1]; j++) {
			if (!reads(p, 0, g->first[0], i, &down) || !reads(p, 1, g->first[1], j, &right))
				continue;
			tap[g->taps] = i * p->kernel[1] + j;
			g->at[g->taps++] = (down + g->source.top) * (ptrdiff_t)g->source.columns + right + g->source.left;
		}
}

static Status *run_input_gradient(const Problem *p, void *work) {
	Gather *g = work;
	TRY(fill(p, &g->source));
	for (g->first[0] = 0; g->first[0] < p->window->stride[0]; g->first[0]++)
		for (g->first[1] = 0; g->first[1] < p->window->stride[1]; g->first[1]++) {
			for (size_t i = 0; i < 2; i++)
				g->places[i] = places_from(p, i, g->first[i]);
			if (g->places[0] == 0 || g->places[1] == 0)
				continue;
			taps_backward(p, g);
			TRY(gathered(p, g));
		}
	return NULL;
}

Status *CALL compute_input_gradient(void *kernel, Context *context) {
	Tensor dy, w, x;
	TRY(take(context, 0, &dy));
	TRY(take(context, 1, &w));
	TRY(take(context, 2, &x));
	Problem p;
	TRY(problem(kernel, context, &x, &w, &p));
	if (!fits(&p, &dy))
		return wrong("a gradient has not the shape of what its convolution gives");
	ptrdiff_t low[2], high[2];
	for (size_t i = 0; i < 2; i++)
		reach(&p, i, &low[i], &high[i]);
	Gather g = {.tile = p.tile, .w = w.data, .size = p.kernel[0] * p.kernel[1], .backward = 1, .out = p.in, .height = p.size[0], .width = p.size[1],
		.source = {dy.data, p.samples, p.out, p.places[0], p.places[1], -low[0], -low[1], high[0] - low[0] + 1, high[1] - low[1] + 1, NULL},
		.step = {p.window->stride[0], p.window->stride[1]}, .stride = {1, 1}};
	TRY(output(context, 0, x.dims, x.axes, &g.y));
	return x.count == 0 ? NULL : with_memory(&p, lay_gather, run_input_gradient, &g);
}

static void lay_kernel_sum(void *work, Piece *piece) {
	KernelSum *k = work;
	lay_map(&k->source, piece);
	k->at = part_of(piece, k->taps, sizeof *k->at);
	k->panels = part_of(piece, kernel_packs(k) * k->places[0] * k->places[1] * k->tile->rows, sizeof *k->panels);
}

static Status *run_kernel_sum(const Problem *p, void *work) {
	KernelSum *k = work;
	TRY(fill(p, &k->source));
	taps_forward(p, &k->source, (ptrdiff_t *)k->at);
	TRY(parallel(p->context, kernel_pack, kernel_packs(k), k));
	return parallel(p->context, kernel_part, kernel_parts(k), k);
}

Status *CALL compute_kernel_gradient(void *kernel, Context *context) {
	Tensor x, dy, w;
	TRY(take(context, 0, &x));
	TRY(take(context, 1, &dy));
	TRY(take(context, 2, &w));
	Problem p;
	TRY(problem(kernel, context, &x, &w, &p));
	if (!fits(&p, &dy))
		return wrong("a gradient has not the shape of what its convolution gives");
	KernelSum k = {.tile = p.tile, .source = padded(&p, x.data), .dy = dy.data, .out = p.out, .places = {p.places[0], p.places[1]},
		.stride = {p.window->stride[0], p.window->stride[1]}, .taps = p.kernel[0] * p.kernel[1]};
	TRY(output(context, 0, w.dims, w.axes, &k.dw));
	return w.count == 0 ? NULL : with_memory(&p, lay_kernel_sum, run_kernel_sum, &k);
}
