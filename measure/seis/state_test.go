package seis

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// FuzzUnmarshal reads damaged states (serialised accumulators, the running sums of a measure). Each
// must be rejected with an error, or be written again unchanged, and none may cause a panic.
func FuzzUnmarshal(f *testing.F) {
	z := smooth(1, 20, 2, 2, 3)
	for _, n := range []int{0, 3, 20} { // samples that feed (see seis_test.go) adds, in batches of 4
		a := feed(f, Defaults(), siteOf("NCHW", z), z.Slice(0, n), z.Slice(0, n), 4)
		data, err := a.MarshalBinary()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := New(Defaults()).New(siteOf("NCHW", z))
		if err != nil {
			t.Fatal(err)
		}
		if a.UnmarshalBinary(data) != nil {
			return
		}
		again, err := a.MarshalBinary()
		if err != nil || string(again) != string(data) {
			t.Fatalf("the state differs after it was read and written (error %v)", err)
		}
	})
}

// TestStatesOfOtherSitesAreErrors checks that a state is neither read nor merged by an accumulator
// of another layer, other samples or other settings.
func TestStatesOfOtherSitesAreErrors(t *testing.T) {
	t.Parallel()
	z := smooth(1, 60, 2, 4, 4)
	state, err := feed(t, Defaults(), siteOf("NCHW", z), z, z, 8).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*Settings, *measure.Site){
		"channels": func(_ *Settings, s *measure.Site) { s.Layer.Shape = []int{3, 4, 4} },
		"shape":    func(_ *Settings, s *measure.Site) { s.Layer.Shape = []int{2, 4, 5} },
		"layout":   func(_ *Settings, s *measure.Site) { s.Layout = measure.NewLayout(61) },
		"null":     func(c *Settings, _ *measure.Site) { c.Null = false },
		"interval": func(c *Settings, _ *measure.Site) { c.Interval = false },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, site := Defaults(), siteOf("NCHW", z)
			edit(&s, &site)
			a, err := New(s).New(site)
			if err != nil {
				t.Fatal(err)
			}
			if err := a.UnmarshalBinary(state); err == nil || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v", err)
			}
			if err := a.Merge(feed(t, Defaults(), siteOf("NCHW", z), z, z, 8)); err == nil {
				t.Error("states of different sites are merged")
			}
		})
	}
}

// The places of a batch must ascend.
func TestBatchesThatDoNotFitAreErrors(t *testing.T) {
	t.Parallel()
	z := smooth(1, 40, 2, 4, 4)
	for name, b := range map[string]*measure.Batch{
		"shape":                   {Place: []int{0}, Index: []int{0}, Clean: z.Slice(0, 1).Reshape(1, 2, 2, 8), Transformed: z.Slice(0, 1)},
		"count":                   {Place: []int{0, 1}, Index: []int{0, 1}, Clean: z.Slice(0, 2), Transformed: z.Slice(0, 1)},
		"no transformed view":     {Place: []int{0}, Index: []int{0}, Clean: z.Slice(0, 1)},
		"place beyond the layout": {Place: []int{40}, Index: []int{0}, Clean: z.Slice(0, 1), Transformed: z.Slice(0, 1)},
		"order of places":         {Place: []int{1, 0}, Index: []int{1, 0}, Clean: z.Slice(0, 2), Transformed: z.Slice(0, 2)},
		"one place twice":         {Place: []int{0, 0}, Index: []int{0, 0}, Clean: z.Slice(0, 2), Transformed: z.Slice(0, 2)},
	} {
		a, err := New(Defaults()).New(siteOf("NCHW", z))
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Update(b); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestCostKeepsToTheBudget checks that there are replicates (scores of half of the samples), and an
// interval, if the moments of the groups of samples that they need fit into the memory budget.
// Groups in a Store (a file) count as if they were in memory, so that scores do not depend on where
// they are computed; Cost does not count them.
func TestCostKeepsToTheBudget(t *testing.T) {
	t.Parallel()
	z := smooth(1, 60, 4, 8, 8)
	m, site := New(Defaults()), siteOf("NCHW", z)
	s := Defaults()
	s.Interval = false
	withoutInterval := New(s)
	p, _ := featureMapsOf(site.Layer, s.Positions)
	need := m.(*seis).memory(site, p)
	for budget, replicates := range map[int64]int{need.all() - 1: 0, need.all(): len(resample.HalfSamples)} {
		site.Budget = budget
		for _, site.Store = range []measure.Store{nil, new(boundedStore)} {
			cost, least := m.Cost(site), withoutInterval.Cost(site)
			groupsInMemory := replicates > 0 && site.Store == nil
			if groupsInMemory && cost < least+need.groups || !groupsInMemory && cost != least {
				t.Errorf("the cost of an accumulator with %d replicates is %d bytes within a budget of %d; without an interval it is %d, and groups need %d", replicates, cost, budget, least, need.groups)
			}
			if got := scoresOf(t, Defaults(), site, z, z); len(got["equivariance"].Replicates) != replicates {
				t.Errorf("%d replicates within %d bytes, want %d", len(got["equivariance"].Replicates), budget, replicates)
			}
		}
	}
}
