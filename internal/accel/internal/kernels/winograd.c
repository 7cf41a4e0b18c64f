//go:build amd64

#include "convolution.h"

#include <string.h>

// Winograd's algorithm: side is the side of an output tile in pixels, 2 or 4, and side + 2 that of
// its input tile. A panel is the weights of MR output channels; a micro-kernel (microkernel.h)
// multiplies one by NR columns, here tiles or channels.

// TILES tiles are transformed at a time. The gradient with respect to the weights is summed for
// GRADIENT_CHANNELS input channels at a time, which are computed as GRADIENT_COLUMNS columns, the
// next multiple of NR. Between the elements of transformed tiles there are PAD floats, a cache
// line, so that these elements do not compete for the same lines. Tiles of 4 x 4 have MAX_ELEMENTS
// elements when they are transformed. Kernels have 3 x 3 = 9 elements.
enum { TILES = 8 * NR, GRADIENT_CHANNELS = 64, GRADIENT_COLUMNS = 11 * NR, PAD = 16, MAX_ELEMENTS = 36 };

static Grid tiles_of(size_t side, size_t height, size_t width) { return (Grid){ceil_div(height, side), ceil_div(width, side)}; }

// elements returns the number of elements of a transformed tile.
static size_t elements(size_t side) { return (side + 2) * (side + 2); }

static const WinogradKernels *transforms(const MicroKernels *mk, size_t side) { return side == 4 ? &mk->f4 : &mk->f2; }

// element_stride returns the distance, in floats, between the panels of an element and those of the
// next.
static size_t element_stride(const Convolution *c) { return panel_count(c) * c->input.channels * c->mk->mr + PAD; }

size_t winograd_panel_floats(const Convolution *c) { return elements(c->side) * element_stride(c); }

void winograd_pack_panel(void *convolution, size_t panel) {
	const Convolution *c = convolution;
	const size_t mr = c->mk->mr, channels = c->input.channels, first = panel * mr, rows = min_size(mr, c->out - first), stride = element_stride(c);
	// A transposed convolution reverses the kernel: from its last element, 8, back to the first.
	const ptrdiff_t next = c->transposed ? -(ptrdiff_t)mr : (ptrdiff_t)mr;
	float kernel[9 * MAX_MR] = {0}, *dst = c->panels + panel * channels * mr;
	for (size_t k = 0; k < channels; k++, dst += mr) {
		transpose(c->w + (c->transposed ? k * c->out + first : first * channels + k) * 9, c->transposed ? 9 : channels * 9, kernel, mr, rows, 9);
		transforms(c->mk, c->side)->weights(kernel + (c->transposed ? 8 * mr : 0), 3 * next, next, dst, (c->side + 2) * stride, stride, mr);
	}
}

static size_t tile_chunks(const Convolution *c, const Grid *tiles) { return ceil_div(c->input.samples * tiles->rows * tiles->columns, TILES); }

// panel_groups returns the number of parts into which the panels of a chunk of tiles are divided:
// several, of about four panels or more, if there are few chunks.
static size_t panel_groups(const Convolution *c, size_t chunks) {
	return chunks >= ENOUGH_PARTS ? 1 : min_size(ENOUGH_PARTS / chunks, ceil_div(panel_count(c), 4));
}

size_t winograd_parts(const Convolution *c) {
	const Grid tiles = tiles_of(c->side, c->height, c->width);
	return tile_chunks(c, &tiles) * panel_groups(c, tile_chunks(c, &tiles));
}

// A Chunk is some tiles and panels, and their sums of products: element x panel x TILES x MR.
typedef struct Chunk {
	Grid tiles;
	size_t first, count;                // first tile and number of tiles
	size_t panel, panels;               // first panel and number of panels
	// Of a transformed pixel: the channels, rounded up to whole vectors.
	size_t width;
	float *transformed, *sums;          // transformed: element x TILES x width
	size_t transformed_stride, sums_stride;
	float *border; // a pixel of zeros, and room for the pixels of one tile
} Chunk;

// multiply computes the sums of products of a chunk.
static void multiply(const Convolution *c, const Chunk *k) {
	const size_t mr = c->mk->mr, channels = c->input.channels, columns = ceil_div(k->count, NR) * NR;
	for (size_t e = 0; e < elements(c->side); e++)
		for (size_t q = 0; q < k->panels; q++)
			c->mk->gemm(c->panels + e * element_stride(c) + (k->panel + q) * mr * channels, channels, k->transformed + e * k->transformed_stride,
				k->width, columns, k->sums + e * k->sums_stride + q * TILES * mr);
}

// write_tiles transforms the sums of panel q of a chunk and writes them in NHWC.
static void write_tiles(const Convolution *c, const Chunk *k, size_t q) {
	const size_t mr = c->mk->mr, channel = (k->panel + q) * mr, n = min_size(mr, c->out - channel), side = c->side;
	const size_t stride[2] = {c->width * c->out, c->out};
	Position p = position_of(&k->tiles, k->first);
	for (size_t i = 0; i < k->count; i++, advance(&p, &k->tiles)) {
		const size_t shape[2] = {min_size(side, c->height - side * p.y), min_size(side, c->width - side * p.x)};
		const size_t at = (p.sample * c->height + side * p.y) * stride[0] + side * p.x * stride[1] + channel;
		transforms(c->mk, c->side)->output(k->sums + (q * TILES + i) * mr, k->sums_stride, &c->epilogue, channel, at, shape, stride, n);
	}
}

// RUN_PIXELS consecutive pixels of a row are written together in NCHW.
enum { RUN_PIXELS = 32 };

// write_runs transforms the sums of panel q of a chunk and writes them in runs of pixels, in NCHW
// and, if the epilogue has y, in NHWC.
static void write_runs(const Convolution *c, const Chunk *k, size_t q) {
	const size_t mr = c->mk->mr, channel = (k->panel + q) * mr, n = min_size(mr, c->out - channel), side = c->side;
	float row[4][RUN_PIXELS * MAX_MR];
	const size_t stride[2] = {sizeof row[0] / sizeof row[0][0], mr};
	const Epilogue convolved = {.bias = c->epilogue.bias, .y = row[0]};
	Position p = position_of(&k->tiles, k->first);
	for (size_t i = 0, tiles; i < k->count; i += tiles) {
		const Position from = p;
		const size_t height = min_size(side, c->height - side * p.y), width = c->width - side * p.x;
		tiles = min_size(min_size(RUN_PIXELS / side, k->tiles.columns - p.x), k->count - i);
		for (size_t j = 0; j < tiles; j++, advance(&p, &k->tiles)) {
			const size_t shape[2] = {height, min_size(side, width - side * j)};
			transforms(c->mk, c->side)->output(k->sums + (q * TILES + i + j) * mr, k->sums_stride, &convolved, channel, side * j * mr, shape, stride, n);
		}
		for (size_t y = 0; y < height; y++) {
			const Run run = {from.sample, (side * from.y + y) * c->width + side * from.x, min_size(side * tiles, width)};
			finish_run(c->mk, &c->epilogue, &run, channel, n, row[y]);
		}
	}
}

// list_tile lists the pixels of an input tile whose first one is (y, x), with zeros for those
// outside the image.
static void list_tile(const Input *in, const float *image, ptrdiff_t y, ptrdiff_t x, ptrdiff_t size, const float *zeros, const float **pixels) {
	for (ptrdiff_t i = y; i < y + size; i++)
		for (ptrdiff_t j = x; j < x + size; j++) {
			const int inside = i >= 0 && j >= 0 && i < (ptrdiff_t)in->height && j < (ptrdiff_t)in->width;
			*pixels++ = inside ? image + (i * in->width + j) * in->pitch : zeros;
		}
}

// read_tiles transforms input tiles. Tiles inside the image are read in place.
static void read_tiles(const Convolution *c, const Chunk *k) {
	const Input *in = &c->input;
	const ptrdiff_t side = c->side, size = side + 2;
	const float *pixels[MAX_ELEMENTS];
	Position p = position_of(&k->tiles, k->first);
	memset(k->border, 0, k->width * sizeof *k->border);
	for (size_t i = 0; i < k->count; i++, advance(&p, &k->tiles)) {
		const ptrdiff_t y = side * (ptrdiff_t)p.y - in->top, x = side * (ptrdiff_t)p.x - in->left;
		const float *image = in->data + p.sample * in->height * in->width * in->pitch;
		float *dst = k->transformed + i * k->width;
		if (in->pitch == k->width && y >= 0 && x >= 0 && y + size <= (ptrdiff_t)in->height && x + size <= (ptrdiff_t)in->width) {
			transforms(c->mk, c->side)->input(NULL, image + (y * in->width + x) * in->pitch, in->width * in->pitch, in->pitch, dst, k->transformed_stride, k->width);
			continue;
		}
		list_tile(in, image, y, x, size, k->border, pixels);
		// Vectors would read beyond the channels.
		for (ptrdiff_t j = 0; in->pitch != k->width && j < size * size; j++) {
			float *copy = k->border + (j + 1) * k->width;
			memcpy(copy, pixels[j], in->channels * sizeof *copy);
			memset(copy + in->channels, 0, (k->width - in->channels) * sizeof *copy);
			pixels[j] = copy;
		}
		transforms(c->mk, c->side)->input(pixels, NULL, 0, 0, dst, k->transformed_stride, k->width);
	}
}

// prefetch loads into the cache what the epilogue reads, while the sums are computed: a cache line,
// 16 floats, at a time.
static void prefetch(const Convolution *c, const Chunk *k) {
	const size_t side = c->side, row = c->width * c->out;
	Position p = position_of(&k->tiles, k->first);
	for (size_t i = 0; i < k->count; i++, advance(&p, &k->tiles)) {
		const size_t height = min_size(side, c->height - side * p.y), floats = min_size(side, c->width - side * p.x) * c->out;
		const size_t from = (p.sample * c->height + side * p.y) * row + side * p.x * c->out;
		for (size_t y = 0; y < height; y++)
			for (size_t j = 0; j < floats; j += 16) {
				if (c->epilogue.addend != NULL)
					__builtin_prefetch(c->epilogue.addend + from + y * row + j);
				if (c->epilogue.mask != NULL)
					__builtin_prefetch(c->epilogue.mask + from + y * row + j);
			}
	}
}

void winograd_part(void *convolution, size_t part) {
	const Convolution *c = convolution;
	Chunk k = {.tiles = tiles_of(c->side, c->height, c->width), .width = ceil_div(c->input.channels, c->mk->mr / 2) * (c->mk->mr / 2)};
	const size_t groups = panel_groups(c, tile_chunks(c, &k.tiles)), each = ceil_div(panel_count(c), groups);
	k.first = part / groups * TILES;
	k.panel = part % groups * each;
	if (k.panel >= panel_count(c))
		return;
	k.count = min_size(TILES, c->input.samples * k.tiles.rows * k.tiles.columns - k.first);
	k.panels = min_size(each, panel_count(c) - k.panel);
	k.transformed_stride = TILES * k.width + PAD;
	k.sums_stride = each * TILES * c->mk->mr + PAD;
	k.transformed = scratch_alloc(c->scratch, (elements(c->side) * (k.transformed_stride + k.sums_stride) + (1 + elements(c->side)) * k.width) * sizeof(float));
	if (k.transformed == NULL)
		return;
	k.sums = k.transformed + elements(c->side) * k.transformed_stride;
	k.border = k.sums + elements(c->side) * k.sums_stride;
	if (c->epilogue.addend != NULL || c->epilogue.mask != NULL)
		prefetch(c, &k);
	read_tiles(c, &k);
	multiply(c, &k);
	for (size_t q = 0; q < k.panels; q++)
		(writes_nchw(&c->epilogue) ? write_runs : write_tiles)(c, &k, q);
	scratch_free(c->scratch, k.transformed);
}

// The gradient with respect to the weights is summed in blocks of BLOCK output channels x
// GRADIENT_CHANNELS input channels. The tiles are divided into ranges, which are summed in
// parallel: range x block x element x panel x GRADIENT_COLUMNS x MR. dy is the gradient with
// respect to the convolution's result, and dw that with respect to its weights.
enum { BLOCK = 64 };

typedef struct Blocks {
	Grid tiles;
	size_t across, count;      // number of blocks along the input's channels, and in all
	size_t ranges, tiles_each; // number of ranges of tiles, and tiles of a range
	size_t tile_count;
	size_t panels, stride, size; // of a block: its panels, and the floats of an element and of all
} Blocks;

static Blocks blocks_of(const WeightGradient *g) {
	Blocks b = {.tiles = tiles_of(g->side, g->dy.height, g->dy.width), .across = ceil_div(g->input.channels, GRADIENT_CHANNELS), .panels = BLOCK / g->mk->mr};
	b.tile_count = g->dy.samples * b.tiles.rows * b.tiles.columns;
	b.count = b.across * ceil_div(g->dy.channels, BLOCK);
	const size_t chunks = ceil_div(b.tile_count, TILES);
	const size_t chunks_each = ceil_div(chunks, min_size(chunks, b.count >= ENOUGH_PARTS ? 1 : ENOUGH_PARTS / b.count));
	// None is empty: a part initialises its sums with its first chunk.
	b.ranges = ceil_div(chunks, chunks_each);
	b.tiles_each = chunks_each * TILES;
	b.stride = b.panels * GRADIENT_COLUMNS * g->mk->mr + PAD;
	b.size = elements(g->side) * b.stride;
	return b;
}

size_t winograd_gradient_parts(const WeightGradient *g) {
	const Blocks b = blocks_of(g);
	return b.ranges * b.count;
}

size_t winograd_gradient_floats(const WeightGradient *g) { return blocks_of(g).ranges == 1 ? 0 : winograd_gradient_parts(g) * blocks_of(g).size; }

// corner_of returns the first pixel of tile i of a padded input.
static const float *corner_of(const Input *in, const Grid *tiles, size_t side, size_t i) {
	const Position p = position_of(tiles, i);
	return in->padded + ((p.sample * in->rows + side * p.y) * in->columns + side * p.x) * in->pitch;
}

// write_gradient transforms the sums of panel q of a block.
static void write_gradient(const WeightGradient *g, const Blocks *b, size_t block, size_t q, const float *sums) {
	const size_t mr = g->mk->mr, channels = g->input.channels;
	const size_t channel = block % b->across * GRADIENT_CHANNELS, columns = min_size(GRADIENT_CHANNELS, channels - channel);
	const size_t first = block / b->across * BLOCK + q * mr;
	float kernels[GRADIENT_CHANNELS * 9 * MAX_MR];
	for (size_t c = 0; c < columns; c++)
		transforms(g->mk, g->side)->weight_gradient(sums + (q * GRADIENT_COLUMNS + c) * mr, (g->side + 2) * b->stride, b->stride,
			kernels + c * 9 * mr, 3 * mr, mr, mr);
	transpose(kernels, mr, g->dw + (first * channels + channel) * 9, channels * 9, columns * 9, min_size(mr, g->dy.channels - first));
}

void winograd_gradient_part(void *gradient, size_t part) {
	const WeightGradient *g = gradient;
	const Blocks b = blocks_of(g);
	const size_t mr = g->mk->mr, block = part % b.count, from = part / b.count * b.tiles_each, to = min_size(from + b.tiles_each, b.tile_count);
	const size_t channel = block % b.across * GRADIENT_CHANNELS, columns = min_size(GRADIENT_CHANNELS, g->input.channels - channel);
	const size_t first = block / b.across * BLOCK, panels = min_size(b.panels, ceil_div(g->dy.channels - first, mr));
	const size_t x_stride = TILES * GRADIENT_CHANNELS + PAD, dy_stride = TILES * mr + PAD;
	const int whole = b.ranges == 1; // the part sums over all tiles
	// Transformed tiles: x has element x tile x GRADIENT_CHANNELS floats, dy element x tile x MR.
	float *x = scratch_alloc(g->scratch, (elements(g->side) * (x_stride + dy_stride) + (whole ? b.size : 0)) * sizeof *x);
	if (x == NULL)
		return;
	float *dy = x + elements(g->side) * x_stride, *sums = whole ? dy + elements(g->side) * dy_stride : g->sums + part * b.size;
	ptrdiff_t displacement[TILES];
	for (size_t i = 0; i < TILES; i++)
		displacement[i] = i * GRADIENT_CHANNELS;
	const float zeros[MAX_MR] = {0};
	for (size_t start = from; start < to; start += TILES) {
		const size_t count = min_size(TILES, to - start);
		for (size_t i = 0; i < count; i++)
			transforms(g->mk, g->side)->input(NULL, corner_of(&g->input, &b.tiles, g->side, start + i) + channel, g->input.columns * g->input.pitch, g->input.pitch,
				x + i * GRADIENT_CHANNELS, x_stride, min_size(GRADIENT_CHANNELS, g->input.pitch - channel));
		for (size_t q = 0; q < panels; q++) {
			for (size_t i = 0; i < count; i++)
				transforms(g->mk, g->side)->output_gradient(corner_of(&g->dy, &b.tiles, g->side, start + i) + first + q * mr, g->dy.columns * g->dy.pitch, g->dy.pitch,
					dy + i * mr, (g->side + 2) * dy_stride, dy_stride, mr);
			for (size_t e = 0; e < elements(g->side); e++)
				for (size_t j = 0; j < columns; j += NR) {
					const float *column[NR];
					for (size_t i = 0; i < NR; i++)
						column[i] = x + e * x_stride + min_size(j + i, columns - 1);
					g->mk->gemm_indirect(dy + e * dy_stride, count, column, displacement, start == from ? zeros : NULL,
						sums + e * b.stride + (q * GRADIENT_COLUMNS + j) * mr);
				}
		}
	}
	for (size_t q = 0; whole && q < panels; q++)
		write_gradient(g, &b, block, q, sums);
	scratch_free(g->scratch, x);
}

size_t winograd_gradient_end_parts(const WeightGradient *g) {
	const Blocks b = blocks_of(g);
	return b.ranges == 1 ? 0 : b.count * b.panels;
}

void winograd_gradient_end_part(void *gradient, size_t part) {
	const WeightGradient *g = gradient;
	const Blocks b = blocks_of(g);
	const size_t block = part / b.panels, q = part % b.panels, columns = min_size(GRADIENT_CHANNELS, g->input.channels - block % b.across * GRADIENT_CHANNELS);
	if (block / b.across * BLOCK + q * g->mk->mr >= g->dy.channels)
		return;
	float *sums = g->sums + block * b.size;
	for (size_t s = 1; s < b.ranges; s++)
		for (size_t e = 0; e < elements(g->side); e++) {
			float *to = sums + e * b.stride + q * GRADIENT_COLUMNS * g->mk->mr;
			g->mk->add(to, to + s * b.count * b.size, columns * g->mk->mr);
		}
	write_gradient(g, &b, block, q, sums);
}
