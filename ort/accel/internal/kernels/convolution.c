#include "convolution.h"

#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t over(size_t a, size_t b) { return (a + b - 1) / b; }

int map_whole(const Map *m) { return m->top == 0 && m->left == 0 && m->rows == m->height && m->columns == m->width; }

size_t map_parts(const Map *m) { return m->last ? m->samples : m->samples * m->channels; }

void map_part(void *map, size_t part) {
	const Map *m = map;
	const ptrdiff_t each = m->last ? m->channels : 1; // numbers of a place
	const float *from = m->data + part * m->height * m->width * each;
	float *to = m->plane + part * m->rows * m->columns * each;
	const ptrdiff_t width = m->width * each, columns = m->columns * each, before = m->left > 0 ? m->left * each : 0, cut = before - m->left * each;
	ptrdiff_t inside = width - cut < columns - before ? width - cut : columns - before; // columns of the plane that are of the image
	if (inside < 0)
		inside = 0;
	for (ptrdiff_t r = 0; r < (ptrdiff_t)m->rows; r++, to += columns) {
		const ptrdiff_t y = r - m->top;
		if (y < 0 || y >= (ptrdiff_t)m->height || inside == 0) {
			memset(to, 0, columns * sizeof *to);
			continue;
		}
		for (ptrdiff_t i = 0; i < before; i++)
			to[i] = 0;
		memcpy(to + before, from + y * width + cut, inside * sizeof *to);
		for (ptrdiff_t i = before + inside; i < columns; i++)
			to[i] = 0;
	}
}

// A place of the target or of the gradient, counted over samples, rows and columns.
typedef struct Place {
	size_t sample, y, x;
} Place;


static void next(Place *p, const size_t places[2]) {
	if (++p->x < places[1])
		return;
	p->x = 0;
	if (++p->y < places[0])
		return;
	p->y = 0;
	p->sample++;
}

// source_of is where a place's first tap would be if it were the plane's first.
static size_t source_of(const Map *m, const Place *p, const size_t stride[2]) {
	return p->sample * m->channels * m->rows * m->columns + (p->y * stride[0] * m->columns + p->x * stride[1]) * (m->last ? m->channels : 1);
}

size_t gather_panels(const Gather *g) { return over(g->out, g->tile->rows); }

size_t gather_panel_floats(const Gather *g) { return gather_panels(g) * g->tile->rows * g->source.channels * g->size; }

size_t gather_parts(const Gather *g) { return gather_panels(g) * over(g->source.samples, g->group); }

// pack_last is gather_pack where the channels are last.
static void pack_last(const Gather *g, size_t first, size_t some, float *to) {
	const size_t channels = g->source.channels, rows = g->tile->rows;
	for (size_t k = 0; k < g->taps; k++)
		for (size_t s = 0; s < channels; s++, to += rows)
			for (size_t r = 0; r < some; r++)
				to[r] = g->w[(g->backward ? s * g->out + first + r : (first + r) * channels + s) * g->size + (g->taps == g->size ? k : g->tap[k])];
}

void gather_pack(void *gather, size_t panel) {
	const Gather *g = gather;
	const size_t rows = g->tile->rows, channels = g->source.channels, depth = channels * g->taps;
	const size_t first = panel * rows, some = least(rows, g->out - first);
	float *to = g->panels + panel * depth * rows;
	if (some < rows)
		memset(to, 0, depth * rows * sizeof *to);
	if (g->source.last) {
		pack_last(g, first, some, to);
		return;
	}
	if (!g->backward && g->taps == g->size) { // the taps of all channels are one row
		transpose(g->w + first * depth, depth, to, rows, some, depth);
		return;
	}
	const size_t along = g->backward ? g->size : channels * g->size; // from row to row of the panel
	for (size_t s = 0; s < channels; s++, to += g->taps * rows) {
		const float *w = g->backward ? g->w + (s * g->out + first) * g->size : g->w + (first * channels + s) * g->size;
		if (g->taps == g->size) {
			transpose(w, along, to, rows, some, g->size);
			continue;
		}
		for (size_t k = 0; k < g->taps; k++)
			for (size_t r = 0; r < some; r++)
				to[k * rows + r] = w[r * along + g->tap[k]];
	}
}

// So many places are worked on by a part of a panel that stays in the first-level cache.
enum { PLACES = 8 * COLUMNS, DEPTH = 4096 };

// put writes the sums of some places, those that follow one another in the target together.
static void put(const float *sums, size_t rows, float *const *to, size_t count, size_t some, size_t apart) {
	for (size_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && to[end] == to[end - 1] + 1; end++)
			;
		transpose(sums + i * rows, rows, to[i], apart, end - i, some);
	}
}

void gather_part(void *gather, size_t part) {
	const Gather *g = gather;
	const size_t panels = gather_panels(g), panel = part % panels, from = part / panels * g->group;
	const size_t rows = g->tile->rows, depth = g->source.channels * g->taps, step = DEPTH / rows;
	const size_t first = panel * rows, some = least(rows, g->out - first), apart = g->height * g->width;
	const float *a = g->panels + panel * depth * rows;
	const size_t end = least(from + g->group, g->source.samples) * g->places[0] * g->places[1];
	Place place = {from, 0, 0};
	float sums[PLACES * MOST_ROWS], start[MOST_ROWS] = {0};
	const float *x[PLACES];
	float *y[PLACES];
	size_t at[PLACES];
	const int last = g->source.last;
	if (g->bias != NULL)
		memcpy(start, g->bias + first, some * sizeof *start);
	for (size_t i = from * g->places[0] * g->places[1]; i < end; i += PLACES) {
		const size_t count = least(PLACES, end - i);
		for (size_t j = 0; j < count; j++, next(&place, g->places)) {
			x[j] = g->source.plane + source_of(&g->source, &place, g->stride);
			at[j] = (g->first[0] + place.y * g->step[0]) * g->width + g->first[1] + place.x * g->step[1];
			at[j] = last ? (place.sample * apart + at[j]) * g->out + first : (place.sample * g->out + first) * apart + at[j];
			y[j] = g->ending.y + at[j];
		}
		for (size_t j = count; j % COLUMNS != 0; j++)
			x[j] = x[count - 1];
		for (size_t k = 0; k < depth || k == 0; k += step)
			for (size_t j = 0; j < count; j += COLUMNS)
				g->tile->multiply(a + k * rows, least(step, depth - k), x + j, g->at + k, k == 0 ? start : NULL, sums + j * rows);
		if (!last)
			put(sums, rows, y, count, some, apart);
		for (size_t j = 0; last && j < count; j++)
			g->tile->finish(sums + j * rows, &g->ending, at[j], some);
	}
}

size_t kernel_panels(const KernelSum *k) { return over(k->out, k->tile->rows); }

size_t kernel_packs(const KernelSum *k) { return kernel_panels(k) * k->source.samples; }

void kernel_pack(void *kernel, size_t part) {
	const KernelSum *k = kernel;
	const size_t rows = k->tile->rows, panel = part / k->source.samples, sample = part % k->source.samples, places = k->places[0] * k->places[1];
	const size_t first = panel * rows, some = least(rows, k->out - first);
	float *to = k->panels + part * places * rows;
	if (some < rows)
		memset(to, 0, places * rows * sizeof *to);
	transpose(k->dy + (sample * k->out + first) * places, places, to, rows, some, places);
}

// So many columns are worked on by as much of a panel as stays in the first-level cache.
enum { GROUP = 24 * COLUMNS };

size_t kernel_parts(const KernelSum *k) { return kernel_panels(k) * over(k->source.channels * k->taps, GROUP); }

void kernel_part(void *kernel, size_t part) {
	const KernelSum *k = kernel;
	const size_t rows = k->tile->rows, step = DEPTH / rows, columns = k->source.channels * k->taps, groups = over(columns, GROUP);
	const size_t panel = part / groups, first = part % groups * GROUP, count = least(GROUP, columns - first);
	const size_t total = k->source.samples * k->places[0] * k->places[1], plane = k->source.rows * k->source.columns;
	const float *a = k->panels + panel * total * rows, *x[COLUMNS];
	float sums[GROUP * MOST_ROWS] = {0};
	ptrdiff_t at[DEPTH / 16];
	Place place = {0, 0, 0};
	for (size_t i = 0; i < total; i += step) {
		const size_t depth = least(step, total - i);
		for (size_t p = 0; p < depth; p++, next(&place, k->places))
			at[p] = source_of(&k->source, &place, k->stride);
		for (size_t j = 0; j < count; j += COLUMNS) {
			for (size_t c = 0; c < COLUMNS; c++) {
				const size_t column = first + least(j + c, count - 1);
				x[c] = k->source.plane + column / k->taps * plane + k->at[column % k->taps];
			}
			k->tile->multiply(a + i * rows, depth, x, at, NULL, sums + j * rows);
		}
	}
	transpose(sums, rows, k->dw + panel * rows * columns + first, columns, count, least(rows, k->out - panel * rows));
}
