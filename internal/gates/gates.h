#include <stddef.h>
#include <stdint.h>

typedef ptrdiff_t extent;

// Writes where sign times a value is gate or more to out, as row << 16 | column, row after row, and returns how many are. Rows of cols values are stride apart.
extent gates_pass(uint32_t *out, const float *values, extent rows, extent cols, extent stride, float sign, const float *gate);

// Adds to sum in how many rows sign times a value is gate or more.
void gates_count(int32_t *sum, const float *values, extent rows, extent cols, extent stride, float sign, const float *gate);

// Tells whether all values are finite.
int gates_finite(const float *values, extent n);

// See Enter of gates.go.
extent gates_enter(const uint32_t *hits, extent from, extent n, const float *values, extent stride, float sign,
	const float *gate, float *items, extent size, uint16_t *fill, uint16_t *turns, extent levels, extent room, extent next, int step, uint64_t draw,
	const float *last, extent apart, const uint8_t *ranked, uint32_t *strong, extent *strongs);

// Tells whether this processor has what is needed. It is called once, before the others.
int gates_available(void);
