package reduction

import "testing"

// TestRunLength checks the lengths of the runs in which a vector is added.
func TestRunLength(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]int{1: 1, 1000: 1000, 1024: 1024, 2 * 1024: 1024, 3 * 1031: 1031, 7 * 7 * 512: 1568, 2053: 2053} {
		if got := runLength(n); got != want {
			t.Errorf("%d values: runs of %d, want %d", n, got, want)
		}
	}
}
