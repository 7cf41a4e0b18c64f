package plan

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestComputedOrderIsAPermutation also checks that any range of it is that of the whole.
func TestComputedOrderIsAPermutation(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3000).Draw(t, "n")
		o := computedOrder(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)).Uint64, n)
		all := o.Range(0, n)
		sorted := slices.Sorted(slices.Values(all))
		for i, index := range sorted {
			if i != index {
				t.Fatalf("index %d of the sorted order of %d is %d", i, n, index)
			}
		}
		lo := rapid.IntRange(0, n).Draw(t, "lo")
		hi := rapid.IntRange(lo, n).Draw(t, "hi")
		if got := o.Range(lo, hi); !slices.Equal(got, all[lo:hi]) {
			t.Fatalf("positions %d to %d are %v, want %v", lo, hi, got, all[lo:hi])
		}
	})
}

// TestComputedOrderIsRandom checks, of many samples, that the mean of the first of the order is that
// of random samples within five standard errors, and that neighbours are not correlated.
func TestComputedOrderIsRandom(t *testing.T) {
	t.Parallel()
	const n, first = 1_000_000_000, 40_000
	got := newOrder(1, "data", n).First(first)
	if other := newOrder(2, "data", n).First(first); slices.Equal(got, other) {
		t.Error("two seeds give the same order")
	}
	u := make([]float64, first)
	var sum, product float64
	for i, index := range got {
		u[i] = float64(index)/n - 0.5 // uniform, with variance 1/12
		sum += u[i]
		if i > 0 {
			product += u[i] * u[i-1]
		}
	}
	if z := sum / math.Sqrt(first/12.); math.Abs(z) > 5 {
		t.Errorf("the mean is %g standard errors from that of all", z)
	}
	if z := product / math.Sqrt(first/144.); math.Abs(z) > 5 {
		t.Errorf("neighbours have a correlation of %g standard errors", z)
	}
}

// TestOrderOfFewIsListed holds the order of data sets to that of earlier versions, on which scores
// depend.
func TestOrderOfFewIsListed(t *testing.T) {
	t.Parallel()
	want := []int{3, 2, 0, 1, 4}
	if got := newOrder(1, "data", 5).Range(0, 5); !slices.Equal(got, want) {
		t.Errorf("the order of five samples is %v, want %v", got, want)
	}
}
