// Products of panels with places anywhere in memory, of which convolutions and their gradients are made.
#ifndef NOETHER_KERNELS_TILE_H
#define NOETHER_KERNELS_TILE_H

#include <stddef.h>

// A tile has so many columns, and at most so many rows.
enum { COLUMNS = 6, MOST_ROWS = 32 };

// A transform takes squares of numbers down and right apart to others; n squares of floats lie side by side, a multiple of half the rows of a tile.
typedef void Transform(const float *from, ptrdiff_t down, ptrdiff_t right, float *to, ptrdiff_t to_down, ptrdiff_t to_right, size_t n);

// What follows a sum: y = f(sums + bias + more), with f the identity or max(0, .), and 0 where a mask is not above 0. All are tensors of the result's shape.
typedef struct Ending {
	const float *bias, *more, *mask; // NULL: none; bias has a number for each channel, and whole panels of them
	int relu;
	float *y; // NULL, without a mask: only the following are wanted
	// Copies of it with the channels first, as it is before more is added, before f, and at the end; NULL: they are not wanted.
	float *first[3];
	size_t channels, plane; // of the result
} Ending;

enum { SUMMED, ADDED, ENDED };

// How images and results whose channels are last go by squares. patch takes the places from[row][column] of a square, n numbers each; where these are NULL
// they are those from a corner on, down and right apart. result ends the sums of the n first rows of a panel, from channel first on: at some place of a result on, so many
// rows, apart[0] apart, of so many places, apart[1] apart.
typedef struct Squaring {
	void (*patch)(const float *const *from, const float *corner, size_t down, size_t right, float *to, size_t to_apart, size_t n);
	Transform *weights;
	void (*result)(const float *from, size_t from_apart, const Ending *e, size_t first, size_t at, const size_t places[2], const size_t apart[2], size_t n);
} Squaring;

// How a processor multiplies.
typedef struct Tile {
	size_t rows; // of a panel: those of two vectors
	// multiply puts in sums, COLUMNS x rows, the products of a panel, depth x rows, with what lies at so many places from each of COLUMNS addresses:
	//
	//	sums[j][r] = start[r] + sum over k of panel[k][r] x[j][at[k]]
	//
	// Without a start, NULL, it adds them to what is there.
	void (*multiply)(const float *panel, size_t depth, const float *const *x, const ptrdiff_t *at, const float *start, float *sums);
	// The transforms of winograd.h: of 4 x 4 places of an image, 3 x 3 weights, to 2 x 2 places of a result, from these, and to the gradient by the weights.
	Transform *patch, *weights, *result, *spread, *taps;
	// product is multiply for a multiple of COLUMNS columns, from 0 on: each has depth numbers side by side, and from column to column they are apart.
	void (*product)(const float *panel, size_t depth, const float *x, size_t apart, size_t columns, float *sums);
	Squaring two, four; // to squares of 2 x 2 and 4 x 4 places of a result
	// finish ends n sums, at most rows, that lie side by side from some place of the result on.
	void (*finish)(const float *sums, const Ending *e, size_t at, size_t n);
	// add adds n numbers to others.
	void (*add)(float *sums, const float *more, size_t n);
} Tile;

// tile_of is for vectors of so many lanes, 8 or 16; 0: as many as suit this processor.
const Tile *tile_of(int lanes);

// tile_for is tile_of for so many rows: it is narrower where that leaves less of a panel empty.
const Tile *tile_for(int lanes, size_t rows);

// tile_width returns how many floats a vector of this processor holds, 0 where there is no tile for it.
int tile_width(void);

// transpose puts rows x columns, rows being stride apart, as columns x rows, columns being apart apart.
void transpose(const float *from, size_t stride, float *to, size_t apart, size_t rows, size_t columns);

#endif
