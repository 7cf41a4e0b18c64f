#include "winograd.h"

#include <string.h>

#include "channelslast.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

// SQUARES are transformed at once, of channels that are CHANNELS at a time in a gradient; LINE keeps what belongs to the 16 numbers of a square from falling on
// the same lines of a cache.
enum { SQUARES = 8 * COLUMNS, CHANNELS = 64, CHANNEL_COLUMNS = 11 * COLUMNS, LINE = 16, NUMBERS = 16, MOST_NUMBERS = 36 };

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t over(size_t a, size_t b) { return (a + b - 1) / b; }

void field_part(void *field, size_t part) {
	const Field *f = field;
	const size_t sample = part / f->rows;
	const ptrdiff_t y = (ptrdiff_t)(part % f->rows) - f->top, before = f->left > 0 ? f->left : 0, cut = before - f->left;
	const ptrdiff_t width = f->width, columns = f->columns, inside = width - cut < columns - before ? width - cut : columns - before;
	float *to = f->places + part * f->columns * f->wide;
	if (y < 0 || y >= (ptrdiff_t)f->height || inside <= 0) {
		memset(to, 0, f->columns * f->wide * sizeof *to);
		return;
	}
	memset(to, 0, before * f->wide * sizeof *to);
	memset(to + (before + inside) * f->wide, 0, (columns - before - inside) * f->wide * sizeof *to);
	to += before * f->wide;
	transpose(f->data + sample * f->channels * f->height * f->width + y * width + cut, f->height * f->width, to, f->wide, f->channels, inside);
	if (f->wide > f->channels)
		for (ptrdiff_t x = 0; x < inside; x++)
			memset(to + x * f->wide + f->channels, 0, (f->wide - f->channels) * sizeof *to);
}

// Squares of 2 x 2 or 4 x 4 places of a result, counted over samples, rows and columns.
typedef struct Squares {
	size_t down, right, all;
} Squares;

static Squares squares_of(size_t side, size_t samples, size_t height, size_t width) {
	const size_t down = over(height, side), right = over(width, side);
	return (Squares){down, right, samples * down * right};
}

// A spot is a square as it is counted on.
typedef struct Spot {
	size_t sample, y, x;
} Spot;

static Spot spot_of(const Squares *s, size_t i) { return (Spot){i / (s->down * s->right), i / s->right % s->down, i % s->right}; }

static void go_on(Spot *p, const Squares *s) {
	if (++p->x < s->right)
		return;
	p->x = 0;
	if (++p->y < s->down)
		return;
	p->y = 0;
	p->sample++;
}

// corner_of is where a square begins in a field.
static const float *corner_of(const Field *f, const Squares *s, size_t i) {
	const size_t sample = i / (s->down * s->right), y = i / s->right % s->down, x = i % s->right;
	return f->places + ((sample * f->rows + 2 * y) * f->columns + 2 * x) * f->wide;
}

size_t winograd_panels(const Winograd *g) { return over(g->out, g->tile->rows); }

// From number to number of the panels.
static size_t panels_apart(const Winograd *g) { return winograd_panels(g) * g->source.channels * g->tile->rows + LINE; }

// Numbers that a square is transformed to.
static size_t numbers(const Winograd *g) { return (g->side + 2) * (g->side + 2); }

static const Squaring *squaring(const Winograd *g) { return g->side == 4 ? &g->tile->four : &g->tile->two; }

size_t winograd_panel_floats(const Winograd *g) { return numbers(g) * panels_apart(g); }

void winograd_pack(void *winograd, size_t panel) {
	const Winograd *g = winograd;
	const size_t rows = g->tile->rows, channels = g->source.channels, first = panel * rows, some = least(rows, g->out - first), apart = panels_apart(g);
	const ptrdiff_t next = g->backward ? -(ptrdiff_t)rows : (ptrdiff_t)rows; // backward the taps are in the opposite order
	float taps[9 * MOST_ROWS] = {0}, *to = g->panels + panel * channels * rows;
	for (size_t c = 0; c < channels; c++, to += rows) {
		if (g->backward)
			transpose(g->w + (c * g->out + first) * 9, 9, taps, rows, some, 9);
		else
			transpose(g->w + (first * channels + c) * 9, channels * 9, taps, rows, some, 9);
		squaring(g)->weights(taps + (g->backward ? 8 * rows : 0), 3 * next, next, to, (g->side + 2) * apart, apart, rows);
	}
}

// Where there are few squares, parts share out the panels too.
static size_t shares(const Winograd *g, const Squares *s) {
	const size_t chunks = over(s->all, SQUARES), most = over(winograd_panels(g), 4);
	return chunks >= 16 ? 1 : least(16 / chunks, most);
}

static Squares results_of(const Winograd *g) { return squares_of(g->side, g->source.samples, g->height, g->width); }

size_t winograd_parts(const Winograd *g) {
	const Squares s = results_of(g);
	return over(s.all, SQUARES) * shares(g, &s);
}

// Some squares and panels, with the products of both: numbers x panel x SQUARES x rows.
typedef struct Piece {
	size_t first, count, panel, panels;
	float *places, *sums; // transformed: numbers x SQUARES x wide
	size_t places_apart, sums_apart;
	float *around; // zeros for a place, and the places of a square
} Piece;

static void multiply(const Winograd *g, const Piece *p) {
	const size_t rows = g->tile->rows, channels = g->source.channels;
	float start[MOST_ROWS] = {0};
	for (size_t f = 0; f < NUMBERS; f++)
		for (size_t q = 0; q < p->panels; q++) {
			const size_t first = (p->panel + q) * rows;
			const float *a = g->panels + f * panels_apart(g) + first * channels;
			float *sums = p->sums + f * p->sums_apart + q * SQUARES * rows;
			memset(start, 0, sizeof start);
			if (g->bias != NULL && f == 5) // the number that every place of a result takes once
				memcpy(start, g->bias + first, least(rows, g->out - first) * sizeof *start);
			for (size_t j = 0; j < p->count; j += COLUMNS) {
				const float *x[COLUMNS];
				for (size_t i = 0; i < COLUMNS; i++)
					x[i] = p->places + f * p->places_apart + least(j + i, p->count - 1) * g->source.wide;
				g->tile->multiply(a, channels, x, g->at, start, sums + j * rows);
			}
		}
}

// multiply_last is multiply where the channels are last, without the bias.
static void multiply_last(const Winograd *g, const Piece *p) {
	const size_t rows = g->tile->rows, channels = g->source.channels, all = numbers(g), columns = over(p->count, COLUMNS) * COLUMNS;
	for (size_t f = 0; f < all; f++)
		for (size_t q = 0; q < p->panels; q++)
			g->tile->product(g->panels + f * panels_apart(g) + (p->panel + q) * rows * channels, channels, p->places + f * p->places_apart, g->source.wide, columns,
				p->sums + f * p->sums_apart + q * SQUARES * rows);
}

// put writes the results of one panel, squares of a row of them together.
static void put(const Winograd *g, const Piece *p, size_t q, const Squares *s) {
	const size_t rows = g->tile->rows, first = (p->panel + q) * rows, some = least(rows, g->out - first), plane = g->height * g->width;
	float row[2][2 * SQUARES * MOST_ROWS];
	for (size_t i = 0, run; i < p->count; i += run) {
		const size_t at = p->first + i, sample = at / (s->down * s->right), y = 2 * (at / s->right % s->down), x = at % s->right;
		run = least(s->right - x, p->count - i);
		for (size_t k = 0; k < run; k++)
			g->tile->result(p->sums + (q * SQUARES + i + k) * rows, 4 * p->sums_apart, p->sums_apart, row[0] + 2 * k * rows, 2 * SQUARES * MOST_ROWS, rows, rows);
		for (size_t k = 0; k < 2 && y + k < g->height; k++)
			transpose(row[k], rows, g->ending.y + (sample * g->out + first) * plane + (y + k) * g->width + 2 * x, plane, least(2 * run, g->width - 2 * x), some);
	}
}

// put_last is put where the channels are last.
static void put_last(const Winograd *g, const Piece *p, size_t q, const Squares *s) {
	const size_t rows = g->tile->rows, first = (p->panel + q) * rows, some = least(rows, g->out - first), side = g->side;
	const size_t apart[2] = {g->width * g->out, g->out};
	const Squaring *by = squaring(g);
	Spot at = spot_of(s, p->first);
	for (size_t i = 0; i < p->count; i++, go_on(&at, s)) {
		const size_t places[2] = {least(side, g->height - side * at.y), least(side, g->width - side * at.x)};
		const size_t to = (at.sample * g->height + side * at.y) * apart[0] + side * at.x * apart[1] + first;
		by->result(p->sums + (q * SQUARES + i) * rows, p->sums_apart, &g->ending, first, to, places, apart, some);
	}
}

// So many squares of a row are put together.
enum { RUN = 8 };

// put_apart is put_last where the channels are wanted first too: by rows of places, which have to be of one length in memory.
static void put_apart(const Winograd *g, const Piece *p, size_t q, const Squares *s) {
	const size_t rows = g->tile->rows, first = (p->panel + q) * rows, some = least(rows, g->out - first), side = g->side;
	float row[4][4 * RUN * MOST_ROWS];
	const size_t apart[2] = {sizeof row[0] / sizeof row[0][0], rows};
	const Ending raw = {.bias = g->ending.bias, .y = row[0]};
	Spot at = spot_of(s, p->first);
	for (size_t i = 0, run; i < p->count; i += run) {
		const size_t y = side * at.y, x = side * at.x, down = least(side, g->height - y);
		run = least(least(RUN, s->right - at.x), p->count - i);
		for (size_t k = 0; k < run; k++, go_on(&at, s)) {
			const size_t places[2] = {down, least(side, g->width - x - side * k)};
			squaring(g)->result(p->sums + (q * SQUARES + i + k) * rows, p->sums_apart, &raw, first, side * k * rows, places, apart, some);
		}
		for (size_t k = 0; k < down; k++) {
			const Places of = {(p->first + i) / (s->down * s->right), (y + k) * g->width + x, least(side * run, g->width - x), first, some};
			end_places(g->tile, &g->ending, &of, row[k]);
		}
	}
}

static void read_squares(const Winograd *g, const Piece *p, const Squares *s) {
	const size_t wide = g->source.wide;
	for (size_t i = 0; i < p->count; i++)
		g->tile->patch(corner_of(&g->source, s, p->first + i), g->source.columns * wide, wide, p->places + i * wide, 4 * p->places_apart, p->places_apart, wide);
}

// surround lists size x size places of an image with its channels last, from place (y, x) of a sample on, and zeros for what is outside.
static void surround(const Field *f, size_t sample, ptrdiff_t y, ptrdiff_t x, ptrdiff_t size, const float *zeros, const float **from) {
	const float *image = f->data + sample * f->height * f->width * f->channels;
	for (ptrdiff_t i = y; i < y + size; i++)
		for (ptrdiff_t j = x; j < x + size; j++) {
			const int inside = i >= 0 && j >= 0 && i < (ptrdiff_t)f->height && j < (ptrdiff_t)f->width;
			*from++ = inside ? image + (i * f->width + j) * f->channels : zeros;
		}
}

// read_last is read_squares where the channels are last: straight from the image, as far as squares lie inside of it.
static void read_last(const Winograd *g, const Piece *p, const Squares *s) {
	const Field *f = &g->source;
	const Squaring *by = squaring(g);
	const ptrdiff_t side = g->side, size = side + 2;
	const float *from[MOST_NUMBERS];
	Spot at = spot_of(s, p->first);
	memset(p->around, 0, f->wide * sizeof *p->around);
	for (size_t i = 0; i < p->count; i++, go_on(&at, s)) {
		const ptrdiff_t y = side * (ptrdiff_t)at.y - f->top, x = side * (ptrdiff_t)at.x - f->left;
		float *to = p->places + i * f->wide;
		if (f->wide == f->channels && y >= 0 && x >= 0 && y + size <= (ptrdiff_t)f->height && x + size <= (ptrdiff_t)f->width) {
			const float *corner = f->data + ((at.sample * f->height + y) * f->width + x) * f->channels;
			by->patch(NULL, corner, f->width * f->channels, f->wide, to, p->places_apart, f->wide);
			continue;
		}
		surround(f, at.sample, y, x, size, p->around, from);
		for (ptrdiff_t k = 0; f->wide != f->channels && k < size * size; k++) { // vectors would reach beyond
			float *copy = p->around + (k + 1) * f->wide;
			memcpy(copy, from[k], f->channels * sizeof *copy);
			memset(copy + f->channels, 0, (f->wide - f->channels) * sizeof *copy);
			from[k] = copy;
		}
		by->patch(from, NULL, 0, 0, to, p->places_apart, f->wide);
	}
}

// expect has what follows the sums on its way into the cache.
static void expect(const Winograd *g, const Piece *p, const Squares *s) {
	const size_t side = g->side, row = g->width * g->out;
	Spot at = spot_of(s, p->first);
	for (size_t i = 0; i < p->count; i++, go_on(&at, s)) {
		const size_t down = least(side, g->height - side * at.y), some = least(side, g->width - side * at.x) * g->out;
		const size_t from = (at.sample * g->height + side * at.y) * row + side * at.x * g->out;
		for (size_t k = 0; k < down; k++)
			for (size_t j = 0; j < some; j += 16) {
				if (g->ending.more != NULL)
					__builtin_prefetch(g->ending.more + from + k * row + j);
				if (g->ending.mask != NULL)
					__builtin_prefetch(g->ending.mask + from + k * row + j);
			}
	}
}

void winograd_part(void *winograd, size_t part) {
	const Winograd *g = winograd;
	const Squares s = results_of(g);
	const size_t parts = shares(g, &s), rows = g->tile->rows, each = over(winograd_panels(g), parts), wide = g->source.wide;
	Piece p = {.first = part / parts * SQUARES, .panel = part % parts * each, .places_apart = SQUARES * wide + LINE, .sums_apart = each * SQUARES * rows + LINE};
	if (p.panel >= winograd_panels(g))
		return;
	p.count = least(SQUARES, s.all - p.first);
	p.panels = least(each, winograd_panels(g) - p.panel);
	p.places = g->memory->take(g->memory, (numbers(g) * (p.places_apart + p.sums_apart) + (1 + numbers(g)) * wide) * sizeof *p.places);
	if (p.places == NULL)
		return;
	p.sums = p.places + numbers(g) * p.places_apart;
	p.around = p.sums + numbers(g) * p.sums_apart;
	if (g->ending.more != NULL || g->ending.mask != NULL)
		expect(g, &p, &s);
	(g->source.last ? read_last : read_squares)(g, &p, &s);
	(g->source.last ? multiply_last : multiply)(g, &p);
	for (size_t q = 0; q < p.panels; q++)
		(!g->source.last ? put : ends_apart(&g->ending) ? put_apart : put_last)(g, &p, q, &s);
	g->memory->give(g->memory, p.places);
}

// A gradient by the weights is summed in blocks of BLOCK x CHANNELS channels, over some shares of the squares: share x block x 16 x panel x CHANNEL_COLUMNS x rows.
enum { BLOCK = 64 };

typedef struct Blocks {
	Squares squares;
	size_t across, all, shares, each; // blocks; squares of a share
	size_t panels, apart, size;       // of a block
} Blocks;

static Blocks blocks_of(const WinogradKernel *g) {
	Blocks b = {.squares = squares_of(2, g->dy.samples, g->dy.height, g->dy.width), .across = over(g->source.channels, CHANNELS), .panels = BLOCK / g->tile->rows};
	b.all = b.across * over(g->dy.channels, BLOCK);
	const size_t chunks = over(b.squares.all, SQUARES);
	b.shares = least(chunks, b.all >= 16 ? 1 : 16 / b.all);
	b.each = over(chunks, b.shares) * SQUARES;
	b.apart = b.panels * CHANNEL_COLUMNS * g->tile->rows + LINE;
	b.size = NUMBERS * b.apart;
	return b;
}

size_t winograd_kernel_floats(const WinogradKernel *g) {
	const Blocks b = blocks_of(g);
	return b.shares * b.all * b.size;
}

size_t winograd_kernel_parts(const WinogradKernel *g) {
	const Blocks b = blocks_of(g);
	return b.shares * b.all;
}

void winograd_kernel_part(void *winograd, size_t part) {
	const WinogradKernel *g = winograd;
	const Blocks b = blocks_of(g);
	const size_t rows = g->tile->rows, block = part % b.all, from = part / b.all * b.each, to = least(from + b.each, b.squares.all);
	const size_t channel = block % b.across * CHANNELS, some = least(CHANNELS, g->source.wide - channel), columns = least(CHANNELS, g->source.channels - channel);
	const size_t first = block / b.across * BLOCK, panels = least(b.panels, over(g->dy.channels - first, rows));
	const size_t places_apart = SQUARES * CHANNELS + LINE, dy_apart = SQUARES * rows + LINE;
	float *sums = g->sums + part * b.size, *places = g->memory->take(g->memory, NUMBERS * (places_apart + dy_apart) * sizeof *places);
	if (places == NULL)
		return;
	float *dy = places + NUMBERS * places_apart;
	ptrdiff_t at[SQUARES];
	for (size_t i = 0; i < SQUARES; i++)
		at[i] = i * CHANNELS;
	const float zeros[MOST_ROWS] = {0};
	for (size_t start = from; start < to; start += SQUARES) {
		const size_t count = least(SQUARES, to - start);
		for (size_t i = 0; i < count; i++)
			g->tile->patch(corner_of(&g->source, &b.squares, start + i) + channel, g->source.columns * g->source.wide, g->source.wide,
				places + i * CHANNELS, 4 * places_apart, places_apart, some);
		for (size_t q = 0; q < panels; q++) {
			for (size_t i = 0; i < count; i++)
				g->tile->spread(corner_of(&g->dy, &b.squares, start + i) + first + q * rows, g->dy.columns * g->dy.wide, g->dy.wide,
					dy + i * rows, 4 * dy_apart, dy_apart, rows);
			for (size_t f = 0; f < NUMBERS; f++)
				for (size_t j = 0; j < columns; j += COLUMNS) {
					const float *x[COLUMNS];
					for (size_t i = 0; i < COLUMNS; i++)
						x[i] = places + f * places_apart + least(j + i, columns - 1);
					g->tile->multiply(dy + f * dy_apart, count, x, at, start == from ? zeros : NULL, sums + f * b.apart + (q * CHANNEL_COLUMNS + j) * rows);
				}
		}
	}
	g->memory->give(g->memory, places);
}

size_t winograd_kernel_ends(const WinogradKernel *g) {
	const Blocks b = blocks_of(g);
	return b.all * b.panels;
}

void winograd_kernel_end(void *winograd, size_t part) {
	const WinogradKernel *g = winograd;
	const Blocks b = blocks_of(g);
	const size_t rows = g->tile->rows, block = part / b.panels, q = part % b.panels, channels = g->source.channels;
	const size_t channel = block % b.across * CHANNELS, columns = least(CHANNELS, channels - channel), first = block / b.across * BLOCK + q * rows;
	if (first >= g->dy.channels)
		return;
	float *sums = g->sums + block * b.size + q * CHANNEL_COLUMNS * rows, taps[CHANNELS * 9 * MOST_ROWS];
	for (size_t s = 1; s < b.shares; s++)
		for (size_t f = 0; f < NUMBERS; f++) {
			const float *more = sums + s * b.all * b.size + f * b.apart;
			for (size_t i = 0; i < columns * rows; i++)
				sums[f * b.apart + i] += more[i];
		}
	for (size_t c = 0; c < columns; c++)
		g->tile->taps(sums + c * rows, 4 * b.apart, b.apart, taps + c * 9 * rows, 3 * rows, rows, rows);
	transpose(taps, rows, g->dw + (first * channels + channel) * 9, channels * 9, columns * 9, least(rows, g->dy.channels - first));
}
