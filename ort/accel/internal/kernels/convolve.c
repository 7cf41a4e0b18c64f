#include <string.h>

#include "convolution.h"
#include "channelslast.h"
#include "problem.h"
#include "winograd.h"

static void layout_map(Map *m, Arena *arena) {
	m->plane = (float *)m->data;
	if (!map_whole(m))
		m->plane = arena_take(arena, m->samples * m->channels * m->rows * m->columns, sizeof(float));
}

static OrtStatus *fill(const Problem *p, Map *m) { return map_whole(m) ? NULL : parallel(p->context, map_part, map_parts(m), m); }

// A convolution's image lies in its padding.
static Map padded(const Problem *p, const float *x) {
	const Window *w = p->window;
	return (Map){x, p->samples, p->in, p->size[0], p->size[1], w->before[0], w->before[1],
		p->size[0] + w->before[0] + w->after[0], p->size[1] + w->before[1] + w->after[1], NULL, p->last};
}

// spread lists the places of the taps of all channels, given those of the first.
static void spread(ptrdiff_t *at, size_t taps, const Map *m) {
	if (!m->last) {
		for (size_t i = taps; i < taps * m->channels; i++)
			at[i] = at[i - taps] + (ptrdiff_t)(m->rows * m->columns);
		return;
	}
	for (size_t k = taps; k-- > 0;) // the last first, as they lie where those of others will
		for (size_t c = m->channels; c-- > 0;)
			at[k * m->channels + c] = at[k] * (ptrdiff_t)m->channels + (ptrdiff_t)c;
}

static void taps_forward(const Problem *p, const Map *m, ptrdiff_t *at) {
	for (size_t i = 0; i < p->kernel[0]; i++)
		for (size_t j = 0; j < p->kernel[1]; j++)
			*at++ = i * p->window->dilation[0] * m->columns + j * p->window->dilation[1];
}

// So many channels on both sides leave panels mostly full.
enum { FULL = 16 };

// A gather of as many samples at once as have so many places.
enum { TOGETHER = 512 };

static size_t group_of(const size_t places[2]) {
	const size_t each = places[0] * places[1];
	return each == 0 ? 1 : (TOGETHER + each - 1) / each;
}

static void layout_gather(void *work, Arena *arena) {
	Gather *g = work;
	layout_map(&g->source, arena);
	g->at = arena_take(arena, g->source.channels * g->size, sizeof *g->at);
	g->tap = arena_take(arena, g->size, sizeof *g->tap);
	if (!g->prepared)
		g->panels = arena_take(arena, gather_panel_floats(g), sizeof *g->panels);
}

static OrtStatus *gathered(const Problem *p, Gather *g) {
	spread(g->at, g->taps, &g->source);
	g->group = group_of(g->places);
	if (!g->prepared)
		TRY(parallel(p->context, gather_pack, gather_panels(g), g));
	if (g->source.last && !g->backward)
		return parallel(p->context, gather_last_part, gather_last_parts(g), g);
	return parallel(p->context, gather_part, gather_parts(g), g);
}

static void *allocate_memory(Memory *m, size_t bytes) {
	void *p = NULL;
	OrtStatus *s = api->AllocatorAlloc(m->of, bytes, &p);
	if (s != NULL) {
		api->ReleaseStatus(s);
		m->lacking = 1;
		return NULL;
	}
	return p;
}

static void free_memory(Memory *m, void *p) {
	OrtStatus *s = api->AllocatorFree(m->of, p);
	if (s != NULL)
		api->ReleaseStatus(s);
}

static Memory memory_of(const Problem *p) { return (Memory){allocate_memory, free_memory, p->memory, 0}; }

static OrtStatus *enough(const Memory *m) { return m->lacking ? invalid_argument("there is no memory for a convolution") : NULL; }

// winograd_suits reports whether a convolution is of 3 x 3 places next to one another, and its channels fill panels.
static int winograd_suits(const Window *w, const size_t kernel[2], size_t in, size_t out) {
	for (size_t i = 0; i < 2; i++)
		if (kernel[i] != 3 || w->stride[i] != 1 || w->dilation[i] != 1)
			return 0;
	return in >= FULL && out >= FULL;
}

static int uses_winograd(const Problem *p) { return winograd_suits(p->window, p->kernel, p->last ? FULL : p->in, p->last ? FULL : p->out); }

// keep_panels takes memory for so many numbers, which lives as long as a kernel.
static OrtStatus *keep_panels(Kernel *k, size_t floats) {
	TRY(api->AllocatorAlloc(k->memory, floats * sizeof *k->panels + 64, &k->prepared));
	k->panels = (float *)(((uintptr_t)k->prepared + 63) & ~(uintptr_t)63);
	return NULL;
}

// prepare transforms or lays out weights once, where they are constant and convolved by squares, or with the channels last.
static OrtStatus *prepare(const OrtKernelInfo *info, Kernel *k, int backward) {
	int constant;
	const OrtValue *value;
	Tensor w;
	TRY(api->KernelInfoGetConstantInput_tensor(info, 1, &constant, &value));
	if (!constant)
		return NULL;
	TRY(tensor_of(value, &w));
	const int last = k->kind->last, squares = w.axes == 4 && k->window.axes == 2 &&
		winograd_suits(&k->window, (size_t[2]){w.dims[2], w.dims[3]}, last ? FULL : w.dims[1], last ? FULL : w.dims[0]);
	if (w.axes != 4 || k->window.axes != 2 || (!squares && (backward || !last)))
		return NULL;
	const size_t out = w.dims[backward ? 1 : 0], in = w.dims[backward ? 0 : 1];
	const Tile *tile = last ? tile_for(k->window.lanes, out) : tile_of(k->window.lanes);
	if (!squares) {
		Gather g = {.tile = tile, .source = {.channels = in, .last = 1}, .w = w.data, .size = w.dims[2] * w.dims[3], .taps = w.dims[2] * w.dims[3], .out = out};
		TRY(keep_panels(k, gather_panel_floats(&g)));
		g.panels = k->panels;
		for (size_t i = 0; i < gather_panels(&g); i++)
			gather_pack(&g, i);
		return NULL;
	}
	Winograd g = {.side = k->side, .tile = tile, .source = {.channels = in}, .w = w.data, .backward = backward, .out = out};
	TRY(keep_panels(k, winograd_panel_floats(&g)));
	g.panels = k->panels;
	for (size_t i = 0; i < winograd_panels(&g); i++)
		winograd_pack(&g, i);
	return NULL;
}

OrtStatus *prepare_convolution(const OrtKernelInfo *info, Kernel *k) { return prepare(info, k, 0); }
OrtStatus *prepare_input_gradient(const OrtKernelInfo *info, Kernel *k) { return prepare(info, k, 1); }

// A field of an image for so many squares of a result, with a border around these.
static Field field_of(const Problem *p, const float *data, size_t channels, const size_t size[2], const ptrdiff_t before[2], const size_t places[2], size_t border) {
	const size_t some = p->last ? p->tile->rows / 2 : p->tile->rows;
	return (Field){data, p->samples, channels, size[0], size[1], before[0], before[1], (places[0] + 1) / 2 * 2 + border, (places[1] + 1) / 2 * 2 + border,
		(channels + some - 1) / some * some, NULL, p->last};
}

static void layout_field(Field *f, Arena *arena) {
	if (!f->last)
		f->places = arena_take(arena, f->samples * f->rows * f->columns * f->wide, sizeof *f->places);
}

static OrtStatus *fill_field(const Problem *p, Field *f) { return f->last ? NULL : parallel(p->context, field_part, f->samples * f->rows, f); }

static void layout_winograd(void *work, Arena *arena) {
	Winograd *g = work;
	layout_field(&g->source, arena);
	if (!g->prepared)
		g->panels = arena_take(arena, winograd_panel_floats(g), sizeof *g->panels);
	g->at = arena_take(arena, g->source.channels, sizeof *g->at);
	if (g->source.last && g->bias != NULL)
		g->ending.bias = arena_take(arena, winograd_panels(g) * g->tile->rows, sizeof *g->bias);
}

static OrtStatus *run_winograd(const Problem *p, void *work) {
	Winograd *g = work;
	for (size_t i = 0; i < g->source.channels; i++)
		((ptrdiff_t *)g->at)[i] = i;
	if (g->ending.bias != NULL)
		memcpy((float *)g->ending.bias, g->bias, g->out * sizeof *g->bias);
	TRY(fill_field(p, &g->source));
	if (!g->prepared)
		TRY(parallel(p->context, winograd_pack, winograd_panels(g), g));
	TRY(parallel(p->context, winograd_part, winograd_parts(g), g));
	return enough(g->memory);
}

static OrtStatus *run_convolution(const Problem *p, void *work) {
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

// ending reads what follows the sums of a result, whose channels are last, from inputs 3 and 4.
static OrtStatus *ending(const Kernel *k, OrtKernelContext *context, size_t count, Ending *e) {
	if (!k->kind->last)
		return NULL;
	Tensor more, mask;
	TRY(read_tensor(context, 3, &more));
	TRY(read_tensor(context, 4, &mask));
	if ((more.data != NULL && more.count != count) || (mask.data != NULL && mask.count != count))
		return invalid_argument("what is added to a convolution, or its mask, is not as large as its result");
	e->more = more.data;
	e->mask = mask.data;
	e->relu = k->relu;
	return NULL;
}

// result_outputs gives what is wanted of a result: in its own layout, and as it is at the end, before f and before more is added with the channels first.
static OrtStatus *result_outputs(const Kernel *k, OrtKernelContext *context, const int64_t *dims, size_t axes, Ending *e) {
	TRY(image_output(k, context, dims, axes, &e->y));
	if (!k->kind->last)
		return NULL;
	const int which[] = {ENDED, ADDED, SUMMED};
	for (size_t i = 0; i < 3; i++)
		TRY(output(context, 1 + i, dims, axes, &e->first[which[i]]));
	e->channels = dims[1];
	e->plane = 1;
	for (size_t i = 2; i < axes; i++)
		e->plane *= dims[i];
	return e->y == NULL && e->mask != NULL ? invalid_argument("a result with a mask is wanted only with the channels first") : NULL;
}

OrtStatus *ORT_API_CALL compute_convolution(void *kernel, OrtKernelContext *context) {
	const Kernel *k = kernel;
	Tensor x, w, bias;
	TRY(read_image(k, context, 0, &x));
	TRY(read_tensor(context, 1, &w));
	TRY(read_tensor(context, 2, &bias));
	Problem p;
	TRY(make_problem(k, context, &x, &w, &p));
	if (p.last)
		p.tile = tile_for(p.window->lanes, p.out);
	if (bias.data != NULL && bias.count != p.out)
		return invalid_argument("a convolution's bias has not as many numbers as its result has channels");
	Gather g = {.tile = p.tile, .source = padded(&p, x.data), .w = w.data, .bias = bias.data, .size = p.kernel[0] * p.kernel[1], .taps = p.kernel[0] * p.kernel[1],
		.out = p.out, .height = p.places[0], .width = p.places[1], .step = {1, 1}, .places = {p.places[0], p.places[1]},
		.stride = {p.window->stride[0], p.window->stride[1]}, .panels = k->panels, .prepared = k->panels != NULL};
	int64_t dims[AXES];
	results(&p, dims);
	TRY(ending(k, context, p.samples * p.out * p.places[0] * p.places[1], &g.ending));
	TRY(result_outputs(k, context, dims, x.axes, &g.ending));
	if (p.samples == 0)
		return NULL;
	if (!uses_winograd(&p))
		return with_memory(&p, layout_gather, run_convolution, &g);
	Memory memory = memory_of(&p);
	const ptrdiff_t before[2] = {p.window->before[0], p.window->before[1]};
	Winograd winograd = {.side = k->side, .tile = p.tile, .memory = &memory, .source = field_of(&p, x.data, p.in, p.size, before, p.places, 2), .w = w.data, .bias = bias.data,
		.ending = g.ending, .out = p.out, .height = p.places[0], .width = p.places[1], .panels = k->panels, .prepared = k->panels != NULL};
	return with_memory(&p, layout_winograd, run_winograd, &winograd);
}

// Along an axis, place y of an image is read by tap k of result i where y = i stride + k dilation - before: with y = first + u stride, by those taps
// for which stride divides first + before - k dilation, at i = u + lead(k).
static int reads(const Problem *p, size_t axis, size_t first, size_t k, ptrdiff_t *lead) {
	const ptrdiff_t stride = p->window->stride[axis], d = (ptrdiff_t)(first + p->window->before[axis]) - (ptrdiff_t)(k * p->window->dilation[axis]);
	*lead = d / stride;
	return d % stride == 0;
}

// Places first, first + stride, ... of an axis of an image.
static size_t places_from(const Problem *p, size_t axis, size_t first) {
	return first >= p->size[axis] ? 0 : (p->size[axis] - first - 1) / p->window->stride[axis] + 1;
}

// reach is from which result to which the places of an image are read, along an axis.
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
			g->at[g->taps++] = (down + g->source.top) * (ptrdiff_t)g->source.columns + right + g->source.left; // places, as yet
		}
}

static OrtStatus *run_input_gradient(const Problem *p, void *work) {
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

// image_shape sets the shape of an image, given that of a convolution's result.
static OrtStatus *image_shape(const Window *window, const Tensor *dy, const Tensor *w, Tensor *x) {
	const size_t n = window->axes;
	if (n == 0 || dy->axes != n + 2 || w->axes != n + 2)
		return invalid_argument("an image, the weights and the strides of a convolution have different axes");
	x->dims[0] = dy->dims[0];
	x->dims[1] = w->dims[1];
	for (size_t i = 2 - n; i < 2; i++)
		x->dims[i + n] = (dy->dims[i + n] - 1) * (int64_t)window->stride[i] + (int64_t)window->output_padding[i] + 1 +
			(w->dims[i + n] - 1) * (int64_t)window->dilation[i] - (int64_t)(window->before[i] + window->after[i]);
	for (size_t i = 0; i < x->axes; i++) {
		if (x->dims[i] < 0)
			return invalid_argument("a transposed convolution has a result of negative size");
		x->count *= x->dims[i];
	}
	return NULL;
}

OrtStatus *ORT_API_CALL compute_input_gradient(void *kernel, OrtKernelContext *context) {
	const Kernel *k = kernel;
	Tensor dy, w;
	TRY(read_image(k, context, 0, &dy));
	TRY(read_tensor(context, 1, &w));
	// The image that the gradient is by, of which only the shape is needed.
	Tensor x = {.axes = dy.axes, .count = 1};
	TRY(image_shape(&k->window, &dy, &w, &x));
	Problem p;
	TRY(make_problem(k, context, &x, &w, &p));
	if (p.last)
		p.tile = tile_for(p.window->lanes, p.in);
	if (!is_result(&p, &dy))
		return invalid_argument("a gradient has another shape than the result of its convolution");
	ptrdiff_t low[2], high[2];
	for (size_t i = 0; i < 2; i++)
		reach(&p, i, &low[i], &high[i]);
	Gather g = {.tile = p.tile, .w = w.data, .size = p.kernel[0] * p.kernel[1], .backward = 1, .out = p.in, .height = p.size[0], .width = p.size[1],
		.source = {dy.data, p.samples, p.out, p.places[0], p.places[1], -low[0], -low[1], high[0] - low[0] + 1, high[1] - low[1] + 1, NULL, p.last},
		.step = {p.window->stride[0], p.window->stride[1]}, .stride = {1, 1}};
	TRY(ending(k, context, x.count, &g.ending));
	TRY(image_output(k, context, x.dims, x.axes, &g.ending.y));
	if (x.count == 0)
		return NULL;
	if (!uses_winograd(&p))
		return with_memory(&p, layout_gather, run_input_gradient, &g);
	Memory memory = memory_of(&p);
	const ptrdiff_t before[2] = {2 - (ptrdiff_t)p.window->before[0], 2 - (ptrdiff_t)p.window->before[1]};
	Winograd winograd = {.side = k->side, .tile = p.tile, .memory = &memory, .source = field_of(&p, dy.data, p.out, p.places, before, p.size, 2), .w = w.data, .backward = 1,
		.ending = g.ending, .out = p.in, .height = p.size[0], .width = p.size[1], .panels = k->panels, .prepared = k->panels != NULL};
	return with_memory(&p, layout_winograd, run_winograd, &winograd);
}

static void layout_kernel_sum(void *work, Arena *arena) {
	KernelSum *k = work;
	layout_map(&k->source, arena);
	k->at = arena_take(arena, k->taps, sizeof *k->at);
	k->panels = arena_take(arena, kernel_packs(k) * k->places[0] * k->places[1] * k->tile->rows, sizeof *k->panels);
}

static OrtStatus *run_kernel_sum(const Problem *p, void *work) {
	KernelSum *k = work;
	TRY(fill(p, &k->source));
	taps_forward(p, &k->source, (ptrdiff_t *)k->at);
	TRY(parallel(p->context, kernel_pack, kernel_packs(k), k));
	return parallel(p->context, kernel_part, kernel_parts(k), k);
}

static void layout_winograd_kernel(void *work, Arena *arena) {
	WinogradKernel *g = work;
	layout_field(&g->source, arena);
	layout_field(&g->dy, arena);
	g->sums = arena_take(arena, winograd_kernel_floats(g), sizeof *g->sums);
}

static OrtStatus *run_winograd_kernel(const Problem *p, void *work) {
	WinogradKernel *g = work;
	TRY(fill_field(p, &g->source));
	TRY(fill_field(p, &g->dy));
	TRY(parallel(p->context, winograd_kernel_part, winograd_kernel_parts(g), g));
	TRY(enough(g->memory));
	return parallel(p->context, winograd_kernel_end, winograd_kernel_ends(g), g);
}

OrtStatus *ORT_API_CALL compute_kernel_gradient(void *kernel, OrtKernelContext *context) {
	const Window *window = &((const Kernel *)kernel)->window;
	Tensor x, dy, w = {.count = 1};
	TRY(read_tensor(context, 0, &x));
	TRY(read_tensor(context, 1, &dy));
	w.axes = x.axes;
	w.dims[0] = dy.dims[1];
	w.dims[1] = x.dims[1];
	for (size_t i = 2; i < w.axes; i++)
		w.dims[i] = window->kernel[i + 2 - w.axes];
	for (size_t i = 0; i < w.axes; i++)
		w.count *= w.dims[i];
	Problem p;
	TRY(make_problem(kernel, context, &x, &w, &p));
	if (!is_result(&p, &dy))
		return invalid_argument("a gradient has another shape than the result of its convolution");
	KernelSum k = {.tile = p.tile, .source = padded(&p, x.data), .dy = dy.data, .out = p.out, .places = {p.places[0], p.places[1]},
		.stride = {p.window->stride[0], p.window->stride[1]}, .taps = p.kernel[0] * p.kernel[1]};
	TRY(output(context, 0, w.dims, w.axes, &k.dw));
	if (w.count == 0)
		return NULL;
	if (!uses_winograd(&p) || p.samples == 0)
		return with_memory(&p, layout_kernel_sum, run_kernel_sum, &k);
	Memory memory = memory_of(&p);
	const ptrdiff_t before[2] = {p.window->before[0], p.window->before[1]}, none[2] = {0, 0};
	WinogradKernel winograd = {.tile = p.tile, .memory = &memory, .source = field_of(&p, x.data, p.in, p.size, before, p.places, 2),
		.dy = field_of(&p, dy.data, p.out, p.places, none, p.places, 0), .dw = k.dw};
	return with_memory(&p, layout_winograd_kernel, run_winograd_kernel, &winograd);
}
