// Results with their channels last, and copies of them with the channels first, written while they are in the caches.
#ifndef NOETHER_KERNELS_LAST_H
#define NOETHER_KERNELS_LAST_H

#include "convolution.h"

// end_places ends the sums of some channels, from one on, of places that follow one another in a plane of a sample: places x rows of a tile.
typedef struct Places {
	size_t sample, place, count; // of the plane
	size_t channel, some;
} Places;

// ends_apart reports whether a result is also wanted with its channels first, or only so.
int ends_apart(const Ending *e);

void end_places(const Tile *tile, const Ending *e, const Places *p, float *sums);

// gather_last_part does some places of a gather forward, whose channels are last, by some panels.
size_t gather_last_parts(const Gather *g);
void gather_last_part(void *gather, size_t part);

#endif
