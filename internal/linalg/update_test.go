package linalg

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// TestMergeStored checks that MergeStored, which reads the added scatter matrix (sums of products
// of deviations from the mean) piece by piece from storage, gives the same result as Merge, whether
// the stored one has float64 or float32. gaussian(g, n, p, m) returns n x p values with a mean of
// m.
func TestMergeStored(t *testing.T) {
	t.Parallel()
	const p, n = 500, 20 // a triangle of 125,250 values, which MergeStored reads in two calls (bandSize)
	g := rand.New(rand.NewPCG(3, 4))
	added, base := NewScatter[float64](p), NewScatter[float64](p)
	added32 := NewScatter[float32](p) // of the same data as added
	added.Add(Centre(gaussian(g, n, p, 3), p), added32, new(Scratch))
	base.Add(Centre(gaussian(g, 2*n, p, 1), p), nil, new(Scratch))
	want, got, got32 := base.Clone(), base.Clone(), base.Clone()
	want.Merge(added)
	calls := 0
	if err := MergeStored(got, added.N, added.Mean, func(values []float64, at int) error {
		calls++
		copy(values, added.Data[at:])
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := MergeStored(got32, added32.N, added32.Mean, func(values []float32, at int) error {
		copy(values, added32.Data[at:])
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if calls < 2 || got.N != want.N || got32.N != want.N {
		t.Errorf("%d calls, %d and %d observations, want %d", calls, got.N, got32.N, want.N)
	}
	checkEqual(t, "mean", got.Mean, want.Mean, 0)
	checkEqual(t, "scatter", got.Data, want.Data, 0)
	for i, v := range got32.Data {
		if math.Abs(v-want.Data[i]) > 1e-4 {
			t.Fatalf("scatter[%d] = %v from float32, want %v", i, v, want.Data[i])
		}
	}
	unreadable := errors.New("unreadable")
	if err := MergeStored(got, 1, added.Mean, func([]float64, int) error { return unreadable }); !errors.Is(err, unreadable) {
		t.Errorf("error %v, want %v", err, unreadable)
	}
}

// TestZeroCrossUpdate checks that the zero CrossUpdate, which updates no scatter, accepts tiles
// without products.
func TestZeroCrossUpdate(t *testing.T) {
	t.Parallel()
	var u CrossUpdate[float64]
	AddCrossProducts(u, []float32(nil), 0, 2, 0, 2)
	u.End()
	if u.c != nil {
		t.Error("the zero CrossUpdate has a scatter")
	}
}
