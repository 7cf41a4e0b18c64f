//go:build amd64

// The operators of convolutions: they read tensors and attributes, choose an algorithm and divide
// the work. convolution.h explains kernel offsets, displacements and grids, and microkernel.h
// panels (MR rows of a matrix, here output channels). An Input has a padded copy of rows x columns
// pixels, with top rows and left columns before the image; in NHWC, pixels are pitch floats apart.
// lanes is the number of floats in a vector, 0 for the most, and side the width in pixels of
// Winograd's output tiles.
//
// Functions layout_... allocate the working memory of functions run_... (see with_arena).

#include <string.h>

#include "convolution.h"

// In NCHW, Winograd's algorithm is used only with at least WINOGRAD_CHANNELS input and output
// channels, so that most panels are full.
enum { WINOGRAD_CHANNELS = 16 };

// suits_winograd reports whether Winograd's algorithm is used: for kernels of 3 x 3 without strides
// and dilations and, in NCHW, with enough channels.
static int suits_winograd(const Window *w, const size_t kernel[2], int nhwc, size_t in, size_t out) {
	for (size_t i = 0; i < 2; i++)
		if (kernel[i] != 3 || w->stride[i] != 1 || w->dilation[i] != 1)
			return 0;
	return nhwc || (in >= WINOGRAD_CHANNELS && out >= WINOGRAD_CHANNELS);
}

// layout_input allocates the padded copy of an input, or uses its data if the copy would be the
// same.
static void layout_input(Input *in, Arena *arena) {
	const int same = !in->to_nhwc && in->top == 0 && in->left == 0 && in->rows == in->height && in->columns == in->width;
	in->padded = same ? (float *)in->data
			  : arena_alloc(arena, in->samples * in->rows * in->columns * (in->to_nhwc ? in->pitch : in->channels), sizeof(float));
}

static OrtStatus *pad_input(const Problem *p, Input *in) { return in->padded == in->data ? NULL : parallel(p->context, pad_part, pad_parts(in), in); }

// winograd_input sets the layout and the padding of the copy of an input for tiles of side x side.
// The output has height x width pixels. border is added to rows and columns: 2 for the input of a
// kernel of 3 x 3, 0 for the dy of a WeightGradient. The number of channels is rounded up to a
// multiple of the given number.
static void winograd_input(Input *in, size_t side, size_t height, size_t width, size_t border, size_t multiple) {
	in->rows = ceil_div(height, side) * side + border;
	in->columns = ceil_div(width, side) * side + border;
	in->pitch = ceil_div(in->channels, multiple) * multiple;
	in->to_nhwc = 1;
}

// displace lists the displacements of all channels, given those of the first channel in pixels.
// They are the distances, in floats, from the pixel with displacement 0.
static void displace(ptrdiff_t *displacement, size_t offsets, const Input *in) {
	if (!in->nhwc) {
		for (size_t i = offsets; i < offsets * in->channels; i++)
			displacement[i] = displacement[i - offsets] + (ptrdiff_t)(in->rows * in->columns);
		return;
	}
	for (size_t k = offsets; k-- > 0;) // backwards, as it is in place
		for (size_t c = in->channels; c-- > 0;)
			displacement[k * in->channels + c] = displacement[k] * (ptrdiff_t)in->channels + (ptrdiff_t)c;
}

// list_offsets lists the displacement of each kernel offset, in pixels.
static void list_offsets(const Problem *p, const Input *in, ptrdiff_t *displacement) {
	for (size_t i = 0; i < p->kernel[0]; i++)
		for (size_t j = 0; j < p->kernel[1]; j++)
			*displacement++ = i * p->window->dilation[0] * in->columns + j * p->window->dilation[1];
}

static void layout_indirect(void *work, Arena *arena) {
	Convolution *c = work;
	layout_input(&c->input, arena);
	c->displacement = arena_alloc(arena, c->input.channels * c->kernel_size, sizeof *c->displacement);
	if (c->transposed)
		c->offset = arena_alloc(arena, c->kernel_size, sizeof *c->offset);
	if (!c->packed)
		c->panels = arena_alloc(arena, indirect_panel_floats(c), sizeof *c->panels);
}

// run_indirect computes the pixels of a grid, given the displacements of the first channel.
static OrtStatus *run_indirect(const Problem *p, Convolution *c) {
	displace(c->displacement, c->offsets, &c->input);
	if (!c->packed)
		TRY(parallel(p->context, indirect_pack_panel, panel_count(c), c));
	return parallel(p->context, indirect_part, indirect_parts(c), c);
}

static OrtStatus *run_conv(const Problem *p, void *work) {
	Convolution *c = work;
	TRY(pad_input(p, &c->input));
	list_offsets(p, &c->input, c->displacement);
	return run_indirect(p, c);
}

// Along an axis, kernel offset k of pixel i of a convolution's result reads pixel i stride + k
// dilation - before of the image, where before is the padding. So pixel y = first + u stride of the
// image is read with the offsets k for which stride divides first + before - k dilation; reads
// reports whether it does. The pixel of the result is i = u + shift.
static int reads(const Problem *p, size_t axis, size_t first, size_t k, ptrdiff_t *shift) {
	const ptrdiff_t stride = p->window->stride[axis], d = (ptrdiff_t)(first + p->window->before[axis]) - (ptrdiff_t)(k * p->window->dilation[axis]);
	*shift = d / stride;
	return d % stride == 0;
}

// strided_size returns the number of pixels first, first + stride, ... along an axis of the image.
static size_t strided_size(const Problem *p, size_t axis, size_t first) {
	return first >= p->input[axis] ? 0 : (p->input[axis] - first - 1) / p->window->stride[axis] + 1;
}

// read_range sets the first and the last pixel of the result that read the image along an axis.
static void read_range(const Problem *p, size_t axis, ptrdiff_t *low, ptrdiff_t *high) {
	*low = PTRDIFF_MAX;
	*high = PTRDIFF_MIN;
	for (size_t first = 0; first < p->window->stride[axis] && first < p->input[axis]; first++)
		for (size_t k = 0; k < p->kernel[axis]; k++) {
			ptrdiff_t shift;
			if (!reads(p, axis, first, k, &shift))
				continue;
			const ptrdiff_t last = shift + (ptrdiff_t)strided_size(p, axis, first) - 1;
			*low = shift < *low ? shift : *low;
			*high = last > *high ? last : *high;
		}
	if (*low > *high)
		*low = *high = 0;
}

// list_transposed_offsets lists the kernel offsets that read the pixels from first on, and their
// displacements.
static void list_transposed_offsets(const Problem *p, Convolution *c) {
	ptrdiff_t down, right;
	c->offsets = 0;
	for (size_t i = 0; i < p->kernel[0]; i++)
		for (size_t j = 0; j < p->kernel[1]; j++) {
			if (!reads(p, 0, c->first[0], i, &down) || !reads(p, 1, c->first[1], j, &right))
				continue;
			c->offset[c->offsets] = i * p->kernel[1] + j;
			c->displacement[c->offsets++] = (down + c->input.top) * (ptrdiff_t)c->input.columns + right + c->input.left;
		}
}

// run_conv_transpose computes the gradient with respect to the image. Pixels whose coordinates have
// the same remainders modulo the strides are read with the same kernel offsets, so they are
// computed together.
static OrtStatus *run_conv_transpose(const Problem *p, void *work) {
	Convolution *c = work;
	TRY(pad_input(p, &c->input));
	for (c->first[0] = 0; c->first[0] < p->window->stride[0]; c->first[0]++)
		for (c->first[1] = 0; c->first[1] < p->window->stride[1]; c->first[1]++) {
			c->grid = (Grid){strided_size(p, 0, c->first[0]), strided_size(p, 1, c->first[1])};
			if (c->grid.rows == 0 || c->grid.columns == 0)
				continue;
			list_transposed_offsets(p, c);
			TRY(run_indirect(p, c));
		}
	return NULL;
}

static void layout_winograd(void *work, Arena *arena) {
	Convolution *c = work;
	if (c->input.to_nhwc)
		layout_input(&c->input, arena);
	if (!c->packed)
		c->panels = arena_alloc(arena, winograd_panel_floats(c), sizeof *c->panels);
	if (c->bias != NULL)
		c->epilogue.bias = arena_alloc(arena, panel_count(c) * c->mk->mr, sizeof *c->bias);
}

static OrtStatus *run_winograd(const Problem *p, void *work) {
	Convolution *c = work;
	Input *in = &c->input;
	if (c->bias != NULL)
		memcpy((float *)c->epilogue.bias, c->bias, c->out * sizeof *c->bias);
	if (in->to_nhwc) {
		TRY(pad_input(p, in));
		*in = (Input){.data = in->padded, .samples = in->samples, .channels = in->channels, .height = in->rows, .width = in->columns, .pitch = in->pitch};
	}
	if (!c->packed)
		TRY(parallel(p->context, winograd_pack_panel, panel_count(c), c));
	TRY(parallel(p->context, winograd_part, winograd_parts(c), c));
	return scratch_status(c->scratch);
}

// convolve computes a convolution, by Winograd's algorithm if that suits.
static OrtStatus *convolve(const Kernel *k, const Problem *p, Convolution *c) {
	c->panels = k->panels;
	c->packed = k->panels != NULL;
	if (!suits_winograd(p->window, p->kernel, k->kind->nhwc, p->in, p->out))
		return with_arena(p, layout_indirect, c->transposed ? run_conv_transpose : run_conv, c);
	Scratch scratch = {p->allocator, 0};
	c->scratch = &scratch;
	c->side = k->side;
	if (!k->kind->nhwc)
		winograd_input(&c->input, c->side, c->height, c->width, 2, c->mk->mr / 2);
	return with_arena(p, layout_winograd, run_winograd, c);
}

// prepare packs or transforms weights once, if they are constant and used with Winograd's algorithm
// or by a convolution in NHWC that is not transposed.
static OrtStatus *prepare(const OrtKernelInfo *info, Kernel *k, int transposed) {
	int constant;
	const OrtValue *value;
	Tensor w;
	TRY(api->KernelInfoGetConstantInput_tensor(info, 1, &constant, &value));
	if (!constant)
		return NULL;
	TRY(tensor_of(value, &w));
	if (w.axes != 4 || k->window.axes != 2)
		return NULL;
	const int nhwc = k->kind->nhwc, winograd = suits_winograd(&k->window, (size_t[2]){w.dims[2], w.dims[3]}, nhwc, w.dims[1], w.dims[0]);
	if (!winograd && (transposed || !nhwc))
		return NULL;
	const size_t out = w.dims[transposed ? 1 : 0], in = w.dims[transposed ? 0 : 1], size = w.dims[2] * w.dims[3];
	Convolution c = {.mk = nhwc ? micro_kernels_for(k->window.lanes, out) : micro_kernels(k->window.lanes), .input = {.channels = in, .nhwc = 1},
		.w = w.data, .transposed = transposed, .kernel_size = size, .offsets = size, .out = out, .side = k->side};
	// The panels start at a cache line, of 64 bytes.
	const size_t floats = winograd ? winograd_panel_floats(&c) : indirect_panel_floats(&c);
	TRY(api->AllocatorAlloc(k->allocator, floats * sizeof *k->panels + 64, &k->prepared));
	c.panels = k->panels = (float *)(((uintptr_t)k->prepared + 63) & ~(uintptr_t)63);
	for (size_t i = 0; i < panel_count(&c); i++)
		(winograd ? winograd_pack_panel : indirect_pack_panel)(&c, i);
	return NULL;
}

OrtStatus *prepare_conv(const OrtKernelInfo *info, Kernel *k) { return prepare(info, k, 0); }
OrtStatus *prepare_conv_transpose(const OrtKernelInfo *info, Kernel *k) { return prepare(info, k, 1); }

// read_epilogue reads the addend and the mask, inputs 3 and 4, and allocates the outputs. dims is
// the shape of the result in NCHW.
static OrtStatus *read_epilogue(const Kernel *k, OrtKernelContext *context, const int64_t *dims, size_t axes, Epilogue *e) {
	e->channels = dims[1];
	e->pixels = 1;
	for (size_t i = 2; i < axes; i++)
		e->pixels *= dims[i];
	if (!k->kind->nhwc)
		return output(context, 0, dims, axes, &e->nchw[FINAL]);
	int64_t nhwc[MAX_AXES] = {dims[0]};
	for (size_t a = 1; a < axes; a++)
		nhwc[a] = dims[a % (axes - 1) + 1];
	TRY(output(context, 0, nhwc, axes, &e->y));
	const int stages[] = {FINAL, ADDED, CONVOLVED};
	for (int i = 0; i + 1 < k->kind->outputs; i++)
		TRY(output(context, 1 + i, dims, axes, &e->nchw[stages[i]]));
	Tensor addend, mask;
	TRY(read_tensor(context, 3, &addend));
	TRY(read_tensor(context, 4, &mask));
	const size_t count = dims[0] * e->channels * e->pixels;
	if ((addend.data != NULL && addend.count != count) || (mask.data != NULL && mask.count != count))
		return invalid_argument("the addend or the mask of a convolution differs in size from its result");
	if (e->y == NULL && mask.data != NULL)
		return invalid_argument("a convolution with a mask must write its result in NHWC");
	e->addend = addend.data;
	e->mask = mask.data;
	e->relu = k->relu;
	return NULL;
}

OrtStatus *ORT_API_CALL compute_conv(void *kernel, OrtKernelContext *context) {
	const Kernel *k = kernel;
	const Window *w = &k->window;
	const int nhwc = k->kind->nhwc;
	Tensor x, weights, bias;
	TRY(read_image(k, context, 0, &x));
	TRY(read_tensor(context, 1, &weights));
	TRY(read_tensor(context, 2, &bias));
	Problem p;
	TRY(make_problem(k, context, &x, &weights, &p));
	if (bias.data != NULL && bias.count != p.out)
		return invalid_argument("the bias of a convolution has another number of elements than its result has channels");
	Convolution c = {.mk = nhwc ? micro_kernels_for(w->lanes, p.out) : micro_kernels(w->lanes), .w = weights.data, .bias = bias.data,
		.input = {.data = x.data, .samples = p.samples, .channels = p.in, .height = p.input[0], .width = p.input[1], .top = w->before[0],
			.left = w->before[1], .rows = p.input[0] + w->before[0] + w->after[0], .columns = p.input[1] + w->before[1] + w->after[1],
			.nhwc = nhwc, .pitch = p.in},
		.kernel_size = p.kernel[0] * p.kernel[1], .offsets = p.kernel[0] * p.kernel[1], .out = p.out, .height = p.output[0], .width = p.output[1],
		.grid = {p.output[0], p.output[1]}, .step = {1, 1}, .stride = {w->stride[0], w->stride[1]}};
	int64_t dims[MAX_AXES] = {p.samples, p.out};
	for (size_t i = 2; i < x.axes; i++)
		dims[i] = p.output[i + 2 - x.axes];
	TRY(read_epilogue(k, context, dims, x.axes, &c.epilogue));
	return p.samples == 0 ? NULL : convolve(k, &p, &c);
}

// transposed_shape sets the sizes and the count of x, the result of a transposed convolution.
// x->axes must be set and x->count be 1.
static OrtStatus *transposed_shape(const Window *window, const Tensor *dy, const Tensor *w, Tensor *x) {
	const size_t n = window->axes;
	if (n == 0 || dy->axes != n + 2 || w->axes != n + 2)
		return invalid_argument("the input, weights and strides of a convolution have different numbers of axes");
	x->dims[0] = dy->dims[0];
	x->dims[1] = w->dims[1];
	for (size_t i = 2 - n; i < 2; i++)
		x->dims[i + n] = (dy->dims[i + n] - 1) * (int64_t)window->stride[i] + (int64_t)window->output_padding[i] + 1 +
			(w->dims[i + n] - 1) * (int64_t)window->dilation[i] - (int64_t)(window->before[i] + window->after[i]);
	for (size_t i = 0; i < x->axes; i++) {
		if (x->dims[i] < 0)
			return invalid_argument("the result of a transposed convolution has a negative size");
		x->count *= x->dims[i];
	}
	return NULL;
}

OrtStatus *ORT_API_CALL compute_conv_transpose(void *kernel, OrtKernelContext *context) {
	const Kernel *k = kernel;
	const Window *w = &k->window;
	const int nhwc = k->kind->nhwc;
	Tensor dy, weights;
	TRY(read_image(k, context, 0, &dy));
	TRY(read_tensor(context, 1, &weights));
	// The input of the convolution that this is the gradient of.
	Tensor x = {.axes = dy.axes, .count = 1};
	TRY(transposed_shape(w, &dy, &weights, &x));
	Problem p;
	TRY(make_problem(k, context, &x, &weights, &p));
	TRY(check_output_gradient(&p, &dy));
	ptrdiff_t low[2], high[2];
	for (size_t i = 0; i < 2; i++)
		read_range(&p, i, &low[i], &high[i]);
	Convolution c = {.mk = nhwc ? micro_kernels_for(w->lanes, p.in) : micro_kernels(w->lanes), .w = weights.data, .transposed = 1,
		.input = {.data = dy.data, .samples = p.samples, .channels = p.out, .height = p.output[0], .width = p.output[1], .top = -low[0],
			.left = -low[1], .rows = high[0] - low[0] + 1, .columns = high[1] - low[1] + 1, .nhwc = nhwc, .pitch = p.out},
		.kernel_size = p.kernel[0] * p.kernel[1], .out = p.in, .height = p.input[0], .width = p.input[1],
		.step = {w->stride[0], w->stride[1]}, .stride = {1, 1}};
	TRY(read_epilogue(k, context, x.dims, x.axes, &c.epilogue));
	return x.count == 0 ? NULL : convolve(k, &p, &c);
}

static void layout_kernel_gradient(void *work, Arena *arena) {
	WeightGradient *g = work;
	layout_input(&g->input, arena);
	g->displacement = arena_alloc(arena, g->offsets, sizeof *g->displacement);
	g->panels = arena_alloc(arena, weight_gradient_pack_parts(g) * g->dy.height * g->dy.width * g->mk->mr, sizeof *g->panels);
}

static OrtStatus *run_kernel_gradient(const Problem *p, void *work) {
	WeightGradient *g = work;
	TRY(pad_input(p, &g->input));
	list_offsets(p, &g->input, g->displacement);
	TRY(parallel(p->context, weight_gradient_pack_part, weight_gradient_pack_parts(g), g));
	return parallel(p->context, weight_gradient_part, weight_gradient_parts(g), g);
}

static void layout_winograd_gradient(void *work, Arena *arena) {
	WeightGradient *g = work;
	layout_input(&g->input, arena);
	layout_input(&g->dy, arena);
	g->sums = arena_alloc(arena, winograd_gradient_floats(g), sizeof *g->sums);
}

static OrtStatus *run_winograd_gradient(const Problem *p, void *work) {
	WeightGradient *g = work;
	TRY(pad_input(p, &g->input));
	TRY(pad_input(p, &g->dy));
	TRY(parallel(p->context, winograd_gradient_part, winograd_gradient_parts(g), g));
	TRY(scratch_status(g->scratch));
	return parallel(p->context, winograd_gradient_end_part, winograd_gradient_end_parts(g), g);
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
	TRY(check_output_gradient(&p, &dy));
	WeightGradient g = {.mk = micro_kernels(window->lanes), .stride = {window->stride[0], window->stride[1]}, .offsets = p.kernel[0] * p.kernel[1],
		.input = {.data = x.data, .samples = p.samples, .channels = p.in, .height = p.input[0], .width = p.input[1], .top = window->before[0],
			.left = window->before[1], .rows = p.input[0] + window->before[0] + window->after[0],
			.columns = p.input[1] + window->before[1] + window->after[1]},
		.dy = {.data = dy.data, .samples = p.samples, .channels = p.out, .height = p.output[0], .width = p.output[1]}};
	TRY(output(context, 0, w.dims, w.axes, &g.dw));
	if (w.count == 0)
		return NULL;
	if (!suits_winograd(window, p.kernel, 0, p.in, p.out) || p.samples == 0)
		return with_arena(&p, layout_kernel_gradient, run_kernel_gradient, &g);
	Scratch scratch = {p.allocator, 0};
	g.scratch = &scratch;
	g.side = ((const Kernel *)kernel)->side;
	winograd_input(&g.input, g.side, p.output[0], p.output[1], 2, g.mk->mr);
	winograd_input(&g.dy, g.side, p.output[0], p.output[1], 0, g.mk->mr);
	return with_arena(&p, layout_winograd_gradient, run_winograd_gradient, &g);
}
