// Products of panels with places anywhere in memory, of which convolutions and their gradients are made.
#ifndef NOETHER_KERNELS_TILE_H
#define NOETHER_KERNELS_TILE_H

#include <stddef.h>

// A tile has so many columns, and at most so many rows.
enum { COLUMNS = 6, MOST_ROWS = 32 };

// A transform takes squares of numbers down and right apart to others; n squares of floats lie side by side, a multiple of half the rows of a tile.
typedef void Transform(const float *from, ptrdiff_t down, ptrdiff_t right, float *to, ptrdiff_t to_down, ptrdiff_t to_right, size_t n);

// How a processor multiplies.
typedef struct Tile {
	size_t rows; // of a panel: those of two vectors
	// multiply puts in sums, COLUMNS x rows, the products of a panel, depth x rows, with what lies at so many places from each of COLUMNS addresses:
	//
	//	sums[j][r] = start[r] + sum over k of panel[k][r] x[j][at[k]]
	//
	// Without a start, NULL, it adds them to what is there.
	void (*multiply)(const float *panel, size_t depth, const float *const *x, const ptrdiff_t *at, const float *start, float *sums);
	// The transforms of winograd.h: of 4 x 4 places of a picture, 3 x 3 weights, to 2 x 2 places of a result, from these, and to the gradient by the weights.
	Transform *patch, *weights, *result, *spread, *taps;
} Tile;

// tile_of is for vectors of so many lanes, 8 or 16; 0: as many as suit this processor.
const Tile *tile_of(int lanes);

// tile_fast reports whether this processor has vectors for which there is a tile.
int tile_fast(void);

// transpose puts rows x columns, rows being stride apart, as columns x rows, columns being apart apart.
void transpose(const float *from, size_t stride, float *to, size_t apart, size_t rows, size_t columns);

#endif
