package resample

import "testing"

// Any two groups are in a set together as often as ten sets allow, and all groups and sets have
// five.
func TestHalfSamplesAreBalanced(t *testing.T) {
	t.Parallel()
	at := func(set, group int) int {
		if InHalf(set, group) {
			return 1
		}
		return -1
	}
	for i := range HalfGroups {
		row, column, others := 0, 0, 0
		for j := range HalfGroups {
			row += at(i, j)
			column += at(j, i)
			together := 0
			for k := range HalfGroups {
				together += at(k, i) * at(k, j)
			}
			if i != j && (together < -2 || together > 2) {
				t.Errorf("groups %d and %d are together %d times more than apart", i, j, together)
			}
			if i != j {
				others += together
			}
		}
		if row != 0 || column != 0 || others != -HalfGroups {
			t.Errorf("set and group %d: %d and %d more than half, and %d with the others", i, row, column, others)
		}
	}
}
