#include "channels.h"

#include "tile.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

// A part has so many rows. Columns are taken as many at a time as fill a cache line.
enum { PART_ROWS = 64, PART_COLUMNS = 16 };

size_t transpose_parts(const ChannelTranspose *t) { return (t->rows + PART_ROWS - 1) / PART_ROWS; }

void transpose_part(void *work, size_t part) {
	const ChannelTranspose *t = work;
	const size_t parts = transpose_parts(t), sample = part / parts * t->rows * t->columns, row = part % parts * PART_ROWS;
	const size_t rows = row + PART_ROWS < t->rows ? PART_ROWS : t->rows - row;
	const float *from = t->x + sample + row * t->columns;
	float *to = t->y + sample + row;
	for (size_t c = 0; c < t->columns; c += PART_COLUMNS)
		transpose(from + c, t->columns, to + c * t->rows, t->rows, rows, c + PART_COLUMNS < t->columns ? PART_COLUMNS : t->columns - c);
}
