package paired

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/measure"
)

// TestKeepBelow checks that only the values of the samples at the first places are stored, for any
// batches, and that states of such a site can be read.
func TestKeepBelow(t *testing.T) {
	t.Parallel()
	site := measure.Site{Layout: measure.Layout{N: 7, Block: 3, Groups: 3}, Classes: []string{"even", "odd"}, KeepSamples: true, KeepBelow: 4}
	kept := func(a *accumulator) (index []int) {
		for _, s := range a.Samples() {
			index = append(index, s.Index)
		}
		return index
	}
	a := accumulate(t, site, 0, 2) // the sample at place 1 of the order cannot be read
	state, err := a.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	again := newAccumulator(difference(), site)
	if err := again.UnmarshalBinary(state); err != nil {
		t.Fatal(err)
	}
	if err := again.Merge(accumulate(t, site, 3, 4, 5, 6)); err != nil {
		t.Fatal(err)
	}
	if got := kept(again); !slices.Equal(got, []int{0, 2, 3}) {
		t.Errorf("the values of samples %v are stored, want 0, 2 and 3", got)
	}
	all := site
	all.KeepBelow = 0
	if got := kept(accumulate(t, all, 0, 2, 6)); !slices.Equal(got, []int{0, 2, 6}) {
		t.Errorf("without a bound the values of samples %v are stored, want 0, 2 and 6", got)
	}
	if again := newAccumulator(difference(), all); again.UnmarshalBinary(state) != nil {
		t.Error("UnmarshalBinary refused a state that has the values of all its samples")
	}
	whole, err := accumulate(t, all, 0, 1, 2, 3, 4).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if again := newAccumulator(difference(), site); again.UnmarshalBinary(whole) == nil {
		t.Error("UnmarshalBinary accepted more values than the site stores")
	}
	if small, large := difference().cost(site), difference().cost(all); small >= large {
		t.Errorf("cost is %d bytes with a bound and %d without, want less with it", small, large)
	}
}
