package firing

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Values are sorted, however many of the first are in order, whatever ties.
func TestSorted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.OneOf(rapid.Float32Range(-2, 2), rapid.SampledFrom([]float32{-1, 0, 1})), 0, 90).Draw(t, "values")
		slices.Sort(v[:rapid.IntRange(0, len(v)).Draw(t, "ordered")])
		want := slices.Clone(v)
		slices.Sort(want)
		if sorted(v); !slices.Equal(v, want) {
			t.Fatalf("%v, want %v", v, want)
		}
	})
}

func BenchmarkSorted(b *testing.B) {
	var v [32]float32
	x := uint32(1)
	for b.Loop() {
		slices.Sort(v[16:])
		copy(v[:16], v[16:])
		for i := range 16 {
			x = x*1664525 + 1013904223
			v[16+i] = float32(x >> 8)
		}
		sorted(v[:])
	}
}
