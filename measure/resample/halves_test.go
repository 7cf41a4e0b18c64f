package resample

import "testing"

// TestHalfSamplesAreBalanced checks that any two groups are in the same half about as often as in
// different halves, that every half has five groups, and that every group is in five halves.
func TestHalfSamplesAreBalanced(t *testing.T) {
	t.Parallel()
	sign := func(half, group int) int {
		if InHalf(half, group) {
			return 1
		}
		return -1
	}
	for i := range HalfGroups {
		row, column, others := 0, 0, 0
		for j := range HalfGroups {
			row += sign(i, j)
			column += sign(j, i)
			product := 0
			for k := range HalfGroups {
				product += sign(k, i) * sign(k, j)
			}
			if i != j && (product < -2 || product > 2) {
				t.Errorf("groups %d and %d: the sum of products of signs = %d, want -2 to 2", i, j, product)
			}
			if i != j {
				others += product
			}
		}
		if row != 0 || column != 0 || others != -HalfGroups {
			t.Errorf("sums of signs of half and of group %d = %d and %d, want 0; of products with other groups %d, want %d", i, row, column, others, -HalfGroups)
		}
	}
}
