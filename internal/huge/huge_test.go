package huge

import "testing"

// Slices of sizes around that of a page are whole, zero and writable to both ends.
func TestSlicesAreThoseOfMake(t *testing.T) {
	for _, n := range []int{0, 1, 1 << 18, 1<<19 - 1, 1 << 19, 1<<19 + 1, 3 << 19, 5<<19 + 7} {
		s := Make[float64](n)
		if len(s) != n || cap(s) < n {
			t.Fatalf("a slice of %d values has length %d", n, len(s))
		}
		for i, v := range s {
			if v != 0 {
				t.Fatalf("value %d of %d is %v", i, n, v)
			}
			s[i] = float64(i)
		}
		for i, v := range s {
			if v != float64(i) {
				t.Fatalf("value %d of %d became %v", i, n, v)
			}
		}
	}
}
