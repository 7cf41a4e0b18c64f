//go:build amd64

// Convolutions as sums over kernel offsets. The pixels are read in place, by lists of addresses
// (the indirect convolution algorithm, see the package comment in kernels.go). convolution.h
// describes the types and has the formulas with first, step and stride. A panel is mr rows of the
// weights, that is, output channels.

#include "convolution.h"

#include <string.h>

size_t pad_parts(const Input *in) {
	if (in->to_nhwc)
		return in->samples * in->rows;
	return in->nhwc ? in->samples : in->samples * in->channels;
}

// pad_row writes a row of the copy from row y of an image or channel. A pixel has the given number
// of floats.
static void pad_row(const Input *in, const float *image, ptrdiff_t y, ptrdiff_t floats, float *dst) {
	// Zeros before the image, pixels of the image that are left out there, and pixels that are kept.
	const ptrdiff_t before = in->left > 0 ? in->left : 0, cropped = before - in->left;
	const ptrdiff_t width = in->width, columns = in->columns, kept = width - cropped < columns - before ? width - cropped : columns - before;
	if (y < 0 || y >= (ptrdiff_t)in->height || kept <= 0) {
		memset(dst, 0, columns * floats * sizeof *dst);
		return;
	}
	memset(dst, 0, before * floats * sizeof *dst);
	memset(dst + (before + kept) * floats, 0, (columns - before - kept) * floats * sizeof *dst);
	dst += before * floats;
	if (!in->to_nhwc) {
		memcpy(dst, image + (y * width + cropped) * floats, kept * floats * sizeof *dst);
		return;
	}
	transpose(image + y * width + cropped, in->height * in->width, dst, floats, in->channels, kept);
	for (ptrdiff_t x = 0; in->pitch > in->channels && x < kept; x++)
		memset(dst + x * floats + in->channels, 0, (in->pitch - in->channels) * sizeof *dst);
}

void pad_part(void *input, size_t part) {
	const Input *in = input;
	const size_t image = in->height * in->width;
	if (in->to_nhwc) {
		pad_row(in, in->data + part / in->rows * in->channels * image, (ptrdiff_t)(part % in->rows) - in->top, in->pitch,
			in->padded + part * in->columns * in->pitch);
		return;
	}
	const size_t floats = in->nhwc ? in->channels : 1;
	for (size_t r = 0; r < in->rows; r++)
		pad_row(in, in->data + part * image * floats, (ptrdiff_t)r - in->top, floats, in->padded + (part * in->rows + r) * in->columns * floats);
}

// source_of returns the address in a padded input that a pixel of the result reads, for a
// displacement of 0 and the stride of the convolution.
static const float *source_of(const Input *in, const Position *p, const size_t stride[2]) {
	return in->padded + p->sample * in->channels * in->rows * in->columns +
		(p->y * stride[0] * in->columns + p->x * stride[1]) * (in->nhwc ? in->channels : 1);
}

size_t panel_count(const Convolution *c) { return ceil_div(c->out, c->mk->mr); }

size_t indirect_panel_floats(const Convolution *c) { return panel_count(c) * c->mk->mr * c->input.channels * c->kernel_size; }

void indirect_pack_panel(void *convolution, size_t panel) {
	const Convolution *c = convolution;
	const size_t mr = c->mk->mr, channels = c->input.channels, depth = channels * c->offsets, first = panel * mr, rows = min_size(mr, c->out - first);
	const size_t row_stride = (c->transposed ? 1 : channels) * c->kernel_size, channel_stride = (c->transposed ? c->out : 1) * c->kernel_size;
	float *panels = c->panels + panel * depth * mr;
	if (rows < mr)
		memset(panels, 0, depth * mr * sizeof *panels);
	if (!c->input.nhwc && !c->transposed) { // the layout of the weights
		transpose(c->w + first * depth, depth, panels, mr, rows, depth);
		return;
	}
	for (size_t i = 0; i < channels; i++)
		for (size_t k = 0; k < c->offsets; k++) {
			const float *w = c->w + first * row_stride + i * channel_stride + (c->offset == NULL ? k : c->offset[k]);
			float *dst = panels + (c->input.nhwc ? k * channels + i : i * c->offsets + k) * mr;
			for (size_t r = 0; r < rows; r++)
				dst[r] = w[r * row_stride];
		}
}

// A part computes PIXELS pixels, with DEPTH floats (16 KiB) of a panel at a time, which stay in the
// first-level cache. MIN_MR is the smallest mr of all MicroKernels.
enum { PIXELS = 8 * NR, DEPTH = 4096, MIN_MR = 16 };

static size_t pixel_blocks(const Convolution *c) { return ceil_div(c->input.samples * c->grid.rows * c->grid.columns, PIXELS); }

// panel_groups returns the number of parts into which the panels of a block of pixels are divided:
// several if there are few blocks.
static size_t panel_groups(const Convolution *c, size_t blocks) {
	return blocks >= ENOUGH_PARTS ? 1 : min_size(ceil_div(ENOUGH_PARTS, blocks), panel_count(c));
}

size_t indirect_parts(const Convolution *c) { return pixel_blocks(c) * panel_groups(c, pixel_blocks(c)); }

// A Block is up to PIXELS pixels: the elements that they read, and their positions in the result.
typedef struct Block {
	size_t count, runs; // numbers of pixels and of elements of run
	const float *x[PIXELS];
	size_t pixel[PIXELS]; // over all samples
	Run run[PIXELS];
} Block;

// list_pixels fills a block, whose runs must be 0, with the pixels of the grid from index from on.
// Addresses are repeated up to a multiple of NR.
static void list_pixels(const Convolution *c, size_t from, Block *b) {
	Position p = position_of(&c->grid, from);
	b->count = min_size(PIXELS, c->input.samples * c->grid.rows * c->grid.columns - from);
	for (size_t j = 0; j < b->count; j++, advance(&p, &c->grid)) {
		const size_t pixel = (c->first[0] + p.y * c->step[0]) * c->width + c->first[1] + p.x * c->step[1];
		b->x[j] = source_of(&c->input, &p, c->stride);
		b->pixel[j] = p.sample * c->height * c->width + pixel;
		Run *last = b->runs > 0 ? &b->run[b->runs - 1] : NULL;
		if (last != NULL && last->sample == p.sample && last->pixel + last->count == pixel)
			last->count++;
		else
			b->run[b->runs++] = (Run){p.sample, pixel, 1};
	}
	for (size_t j = b->count; j % NR != 0; j++)
		b->x[j] = b->x[b->count - 1];
}

// prefetch loads into the cache, while the sums are computed, what the epilogue of n channels of a
// pixel will read and write from index at on: a cache line, 16 floats, at a time.
static inline void prefetch(const Epilogue *e, size_t at, size_t n) {
	for (size_t c = 0; c < n; c += 16) {
		if (e->addend != NULL)
			__builtin_prefetch(e->addend + at + c);
		if (e->y != NULL)
			__builtin_prefetch(e->y + at + c, 1);
	}
}

// indirect_part computes one block of pixels with one group of panels. In it, each is the number of
// panels in a group, depth the number of columns of a panel, and step how many of them are used at
// a time.
void indirect_part(void *convolution, size_t part) {
	const Convolution *c = convolution;
	const size_t groups = panel_groups(c, pixel_blocks(c)), each = ceil_div(panel_count(c), groups), end = min_size((part % groups + 1) * each, panel_count(c));
	const size_t mr = c->mk->mr, depth = c->input.channels * c->offsets, step = DEPTH / mr;
	const int nchw = writes_nchw(&c->epilogue);
	float sums[PIXELS * MAX_MR], start[MAX_MR] = {0};
	Block b;
	b.runs = 0;
	list_pixels(c, part / groups * PIXELS, &b);
	for (size_t panel = part % groups * each; panel < end; panel++) {
		const size_t channel = panel * mr, n = min_size(mr, c->out - channel);
		if (c->bias != NULL)
			memcpy(start, c->bias + channel, n * sizeof *start);
		for (size_t k = 0; k < depth || k == 0; k += step)
			for (size_t j = 0; j < b.count; j += NR) {
				for (size_t i = j; c->input.nhwc && k + step >= depth && i < min_size(j + NR, b.count); i++)
					prefetch(&c->epilogue, b.pixel[i] * c->out + channel, n);
				c->mk->gemm_indirect(c->panels + (panel * depth + k) * mr, min_size(step, depth - k), b.x + j, c->displacement + k,
					k == 0 ? start : NULL, sums + j * mr);
			}
		for (size_t j = 0; !nchw && j < b.count; j++)
			c->mk->finish(sums + j * mr, &c->epilogue, b.pixel[j] * c->out + channel, n);
		for (size_t i = 0, j = 0; nchw && i < b.runs; j += b.run[i++].count)
			finish_run(c->mk, &c->epilogue, &b.run[i], channel, n, sums + j * mr);
	}
}

// A part of the gradient with respect to the weights computes COLUMNS columns (pairs of an input
// channel and a kernel offset), with as much of a panel as stays in the first-level cache.
enum { COLUMNS = 24 * NR };

static size_t gradient_panels(const WeightGradient *g) { return ceil_div(g->dy.channels, g->mk->mr); }

size_t weight_gradient_pack_parts(const WeightGradient *g) { return gradient_panels(g) * g->dy.samples; }

void weight_gradient_pack_part(void *gradient, size_t part) {
	const WeightGradient *g = gradient;
	const size_t mr = g->mk->mr, panel = part / g->dy.samples, sample = part % g->dy.samples, pixels = g->dy.height * g->dy.width;
	const size_t first = panel * mr, rows = min_size(mr, g->dy.channels - first);
	float *dst = g->panels + part * pixels * mr;
	if (rows < mr)
		memset(dst, 0, pixels * mr * sizeof *dst);
	transpose(g->dy.data + (sample * g->dy.channels + first) * pixels, pixels, dst, mr, rows, pixels);
}

static size_t column_groups(const WeightGradient *g) { return ceil_div(g->input.channels * g->offsets, COLUMNS); }

size_t weight_gradient_parts(const WeightGradient *g) { return gradient_panels(g) * column_groups(g); }

void weight_gradient_part(void *gradient, size_t part) {
	const WeightGradient *g = gradient;
	const size_t mr = g->mk->mr, step = DEPTH / mr, columns = g->input.channels * g->offsets, plane = g->input.rows * g->input.columns;
	const size_t panel = part / column_groups(g), first = part % column_groups(g) * COLUMNS, count = min_size(COLUMNS, columns - first);
	const size_t total = g->dy.samples * g->dy.height * g->dy.width;
	const Grid grid = {g->dy.height, g->dy.width};
	const float *x[NR];
	float sums[COLUMNS * MAX_MR] = {0};
	ptrdiff_t displacement[DEPTH / MIN_MR]; // of step pixels
	Position p = {0};
	for (size_t i = 0; i < total; i += step) {
		const size_t depth = min_size(step, total - i);
		for (size_t k = 0; k < depth; k++, advance(&p, &grid))
			displacement[k] = source_of(&g->input, &p, g->stride) - g->input.padded;
		for (size_t j = 0; j < count; j += NR) {
			for (size_t c = 0; c < NR; c++) {
				const size_t column = first + min_size(j + c, count - 1);
				x[c] = g->input.padded + column / g->offsets * plane + g->displacement[column % g->offsets];
			}
			g->mk->gemm_indirect(g->panels + (panel * total + i) * mr, depth, x, displacement, NULL, sums + j * mr);
		}
	}
	transpose(sums, mr, g->dw + panel * mr * columns + first, columns, count, min_size(mr, g->dy.channels - panel * mr));
}
