#include "channelslast.h"

#include <string.h>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

static size_t least(size_t a, size_t b) { return a < b ? a : b; }
static size_t over(size_t a, size_t b) { return (a + b - 1) / b; }

int ends_apart(const Ending *e) { return e->y == NULL || e->first[SUMMED] != NULL || e->first[ADDED] != NULL || e->first[ENDED] != NULL; }

// turn writes places x channels, places being stride apart, to planes.
static void turn(const float *from, size_t stride, const Ending *e, const Places *p, int which) {
	if (e->first[which] != NULL)
		transpose(from, stride, e->first[which] + (p->sample * e->channels + p->channel) * e->plane + p->place, e->plane, p->count, p->some);
}

void end_places(const Tile *tile, const Ending *e, const Places *p, float *sums) {
	const size_t rows = tile->rows, at = (p->sample * e->plane + p->place) * e->channels + p->channel;
	if (!ends_apart(e)) {
		for (size_t j = 0; j < p->count; j++)
			tile->finish(sums + j * rows, e, at + j * e->channels, p->some);
		return;
	}
	turn(sums, rows, e, p, SUMMED);
	Ending rest = *e;
	if (e->more != NULL && (e->first[ADDED] != NULL || e->y == NULL)) {
		for (size_t j = 0; j < p->count; j++)
			tile->add(sums + j * rows, e->more + at + j * e->channels, p->some);
		rest.more = NULL;
	}
	turn(sums, rows, e, p, ADDED);
	if (e->y == NULL)
		rest.y = sums;
	for (size_t j = 0; j < p->count; j++)
		tile->finish(sums + j * rows, &rest, e->y == NULL ? j * rows : at + j * e->channels, p->some);
	turn(e->y == NULL ? sums : e->y + at, e->y == NULL ? rows : e->channels, e, p, ENDED);
}

// So many places are worked on at once, and so much of a panel stays in the first-level cache.
enum { PLACES = 8 * COLUMNS, DEPTH = 4096 };

// Where there are few places, parts share out the panels too.
static size_t shares(const Gather *g, size_t blocks) { return blocks >= 16 ? 1 : least(over(16, blocks), gather_panels(g)); }

static size_t blocks_of(const Gather *g) { return over(g->source.samples * g->places[0] * g->places[1], PLACES); }

size_t gather_last_parts(const Gather *g) {
	const size_t blocks = blocks_of(g);
	return blocks * shares(g, blocks);
}

// sources lists where the sums of some places read from, and whole tiles of them.
static size_t sources(const Gather *g, size_t from, const float **x) {
	const Map *m = &g->source;
	const size_t width = g->places[1], plane = g->places[0] * width, count = least(PLACES, m->samples * plane - from);
	size_t sample = from / plane, row = from % plane / width, column = from % width;
	for (size_t j = 0; j < count; j++) {
		x[j] = m->plane + ((sample * m->rows + row * g->stride[0]) * m->columns + column * g->stride[1]) * m->channels;
		if (++column == width) {
			column = 0;
			if (++row == g->places[0]) {
				row = 0;
				sample++;
			}
		}
	}
	for (size_t j = count; j % COLUMNS != 0; j++)
		x[j] = x[count - 1];
	return count;
}

// expect has some channels of what is added and of the result on their way into the cache, while their sums are worked out: what is written has to be read first.
static inline void expect(const Ending *e, size_t at, size_t count, size_t some) {
	for (size_t j = 0; j < count; j++, at += e->channels)
		for (size_t c = 0; c < some; c += 16) {
			if (e->more != NULL)
				__builtin_prefetch(e->more + at + c);
			if (e->y != NULL)
				__builtin_prefetch(e->y + at + c, 1);
		}
}

void gather_last_part(void *gather, size_t part) {
	const Gather *g = gather;
	const size_t blocks = blocks_of(g), share = shares(g, blocks), each = over(gather_panels(g), share), plane = g->places[0] * g->places[1];
	const size_t rows = g->tile->rows, depth = g->source.channels * g->taps, step = DEPTH / rows, from = part / share * PLACES;
	const float *x[PLACES];
	const size_t count = sources(g, from, x), last = least((part % share + 1) * each, gather_panels(g));
	float sums[PLACES * MOST_ROWS], start[MOST_ROWS] = {0};
	for (size_t panel = part % share * each; panel < last; panel++) {
		const size_t first = panel * rows, some = least(rows, g->out - first);
		const float *a = g->panels + panel * depth * rows;
		if (g->bias != NULL)
			memcpy(start, g->bias + first, some * sizeof *start);
		for (size_t k = 0; k < depth || k == 0; k += step)
			for (size_t j = 0; j < count; j += COLUMNS) {
				if (k + step >= depth)
					expect(&g->ending, (from + j) * g->out + first, least(COLUMNS, count - j), some);
				g->tile->multiply(a + k * rows, least(step, depth - k), x + j, g->at + k, k == 0 ? start : NULL, sums + j * rows);
			}
		for (size_t j = 0, run; j < count; j += run) {
			const Places p = {(from + j) / plane, (from + j) % plane, run = least(count - j, plane - (from + j) % plane), first, some};
			end_places(g->tile, &g->ending, &p, sums + j * rows);
		}
	}
}
