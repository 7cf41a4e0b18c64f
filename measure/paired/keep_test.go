package paired

import (
	"slices"
	"testing"

	"github.com/noether-ml/noether/measure"
)

// TestKeepBelow checks Site.KeepBelow: only the values of samples whose place is below it are
// stored, however the samples are divided into batches, and the serialised state can be read. The
// measure, difference, and accumulate, which returns an accumulator of the samples at some places,
// are in paired_test.go.
func TestKeepBelow(t *testing.T) {
	t.Parallel()
	site := measure.Site{Layout: measure.Layout{N: 7, Block: 3, Groups: 3}, Classes: []string{"even", "odd"}, KeepSamples: true, KeepBelow: 4}
	kept := func(a *accumulator) (index []int) {
		for _, s := range a.Samples() {
			index = append(index, s.Index)
		}
		return index
	}
	a := accumulate(t, site, 0, 2) // as if the sample at place 1 could not be read
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
		t.Errorf("without KeepBelow the values of samples %v are stored, want 0, 2 and 6", got)
	}
	if again := newAccumulator(difference(), all); again.UnmarshalBinary(state) != nil {
		t.Error("UnmarshalBinary refused the state of samples 0 and 2 with the values of both")
	}
	whole, err := accumulate(t, all, 0, 1, 2, 3, 4).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if again := newAccumulator(difference(), site); again.UnmarshalBinary(whole) == nil {
		t.Error("UnmarshalBinary accepted more values than the site stores")
	}
	if small, large := difference().cost(site), difference().cost(all); small >= large {
		t.Errorf("cost is %d bytes with KeepBelow and %d without, want less with it", small, large)
	}
}
