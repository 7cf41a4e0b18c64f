package quickselect

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestNth checks that Nth returns the value at index k of the sorted slice, and reorders the slice
// so that no larger value comes before it and no smaller one after it.
func TestNth(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Float64Range(-10, 10)
		if rapid.Bool().Draw(t, "ties") {
			value = rapid.Map(rapid.IntRange(0, 3), func(i int) float64 { return float64(i) })
		}
		values := rapid.SliceOfN(value, 1, 300).Draw(t, "values")
		if rapid.Bool().Draw(t, "sorted") {
			slices.Sort(values)
		}
		k := rapid.IntRange(0, len(values)-1).Draw(t, "k")
		sorted := slices.Sorted(slices.Values(values))
		if got := Nth(values, k); got != sorted[k] || values[k] != got {
			t.Fatalf("Nth returns %g and leaves %g at index %d, want %g", got, values[k], k, sorted[k])
		}
		if slices.Max(values[:k+1]) > sorted[k] || slices.Min(values[k:]) < sorted[k] {
			t.Fatalf("a value before index %d is larger, or one after it smaller", k)
		}
		if slices.Sort(values); !slices.Equal(values, sorted) {
			t.Fatal("Nth changed the values, not their order alone")
		}
	})
}
