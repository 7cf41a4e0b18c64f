package seis

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/measuretest"
	"github.com/noether-ml/noether/tensor"
)

// For the intervals of its scores, an accumulator keeps the second moments of each of maxGroups
// groups of samples, of which half-samples are made. The groups are in memory or in a
// measure.Store, usually a file. In these tests z are activations on clean (untransformed) inputs
// and zt on transformed ones. In seis_test.go are smooth, which returns random feature maps,
// siteOf, scoresOf, and feed, which updates an accumulator in batches of the size that is its last
// argument.

// A boundedStore is a Store in memory with a largest size.
type boundedStore struct {
	memoryStore
	limit int64 // bytes; 0: none
}

var errFull = errors.New("the store is full")

func (s *boundedStore) WriteAt(p []byte, at int64) (int, error) {
	if s.limit > 0 && at+int64(len(p)) > s.limit {
		return 0, errFull
	}
	return s.memoryStore.WriteAt(p, at)
}

// The scores and replicates (scores of half-samples, which give the interval) are the same with
// groups in a Store and with groups in memory.
func TestGroupsInAStoreGiveTheSameInterval(t *testing.T) {
	t.Parallel()
	z, zt := smooth(1, 300, 3, 9, 9), smooth(2, 300, 3, 9, 9)
	for i := range zt.Data {
		zt.Data[i] += z.Data[i]
	}
	s := Settings{Variance: 0.95, Positions: 100, Null: true, Interval: true}
	want := scoresOf(t, s, siteOf("NCHW", z), z, zt)
	site := siteOf("NCHW", z)
	store := new(boundedStore)
	site.Store = store
	got := scoresOf(t, s, site, z, zt)
	for name, w := range want {
		g := got[name]
		near(t, name, g.Value, w.Value, 0)
		if len(g.Replicates) != len(w.Replicates) {
			t.Fatalf("%d replicates of %s, want %d", len(g.Replicates), name, len(w.Replicates))
		}
		for i, r := range w.Replicates {
			near(t, name+" of a replicate", g.Replicates[i].Value, r.Value, 0)
			if g.Replicates[i].Left != r.Left {
				t.Errorf("%d observations left out, want %d", g.Replicates[i].Left, r.Left)
			}
		}
	}
	triangle := 162 * 163 / 2 // of the symmetric scatter of 9 x 9 clean and 9 x 9 transformed variables
	if room := int64(triangle * maxGroups * single); store.end != room {
		t.Errorf("%d bytes are kept in the store, want %d", store.end, room)
	}
}

// An accumulator with a Store reads the states (serialised sums) of one without, and the reverse.
func TestStatesDoNotDependOnTheStore(t *testing.T) {
	t.Parallel()
	z, zt := smooth(1, 60, 2, 4, 4), smooth(2, 60, 2, 4, 4)
	plain := siteOf("NCHW", z)
	stored := plain
	stored.Store = new(boundedStore)
	for name, sites := range map[string][2]measure.Site{"into a store": {plain, stored}, "out of a store": {stored, plain}, "from store to store": {stored, stored}} {
		raw, err := feed(t, Defaults(), sites[0], z, zt, 7).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		a, err := New(Defaults()).New(sites[1])
		if err != nil {
			t.Fatal(err)
		}
		if err := a.UnmarshalBinary(raw); err != nil {
			t.Fatal(err)
		}
		again, err := a.MarshalBinary()
		if err != nil || string(again) != string(raw) {
			t.Errorf("%s: the state differs after it was read and written (error %v)", name, err)
		}
	}
}

// A group whose samples were added in parts, by shards or from a saved state, has the moments of
// one whose samples were added at once, up to rounding. The test does not compare replicates, since
// these amplify rounding where canonical correlations are equal.
func TestGroupsInPartsAreThoseOfTheWhole(t *testing.T) {
	t.Parallel()
	z, zt := smooth(1, 300, 3, 6, 6), smooth(2, 300, 3, 6, 6)
	site := siteOf("NCHW", z)
	whole := feed(t, Defaults(), site, z, zt, 16).(*accumulator)
	for _, cut := range []int{15, 15 * 8, 15 * 7, 15 * 19} { // between blocks of 15 consecutive samples
		merged, rest := empty(t, site), empty(t, site)
		feedRange(t, merged, z, zt, 0, cut)
		feedRange(t, rest, z, zt, cut, 300)
		if err := merged.Merge(rest); err != nil {
			t.Fatal(err)
		}
		saved := empty(t, site)
		feedRange(t, saved, z, zt, 0, cut)
		raw, err := saved.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		resumed := empty(t, site)
		if err := resumed.UnmarshalBinary(raw); err != nil {
			t.Fatal(err)
		}
		feedRange(t, resumed, z, zt, cut, 300)
		feedRange(t, saved, z, zt, cut, 300)
		want := groupsOf(t, whole)
		for name, a := range map[string]*accumulator{"merged": merged, "resumed": resumed, "continued after saving": saved} {
			for i, got := range groupsOf(t, a) {
				different := 0
				for j, v := range got.Data {
					near(t, name, float64(v), float64(want[i].Data[j]), 1e-6*math.Abs(float64(v)))
					if v != want[i].Data[j] {
						different++
					}
				}
				if got.N != want[i].N || different > len(got.Data)/1000 {
					t.Errorf("%s at %d: group %d has %d observations, want %d, and %d numbers differ", name, cut, i, got.N, want[i].N, different)
				}
			}
		}
	}
}

// empty returns a new accumulator with the default settings.
func empty(t *testing.T, site measure.Site) *accumulator {
	t.Helper()
	a, err := New(Defaults()).New(site)
	if err != nil {
		t.Fatal(err)
	}
	return a.(*accumulator)
}

// feedRange feeds the samples from lo to hi (exclusive).
func feedRange(t *testing.T, a measure.Accumulator, z, zt tensor.Tensor, lo, hi int) {
	t.Helper()
	b := &measure.Batch{Clean: z.Slice(lo, hi), Transformed: zt.Slice(lo, hi)}
	for i := lo; i < hi; i++ {
		b.Place, b.Index = append(b.Place, i), append(b.Index, i)
	}
	if err := a.Update(b); err != nil {
		t.Fatal(err)
	}
}

// groupsOf returns copies of the moments of the groups.
func groupsOf(t *testing.T, a *accumulator) (out []*linalg.Scatter[float32]) {
	t.Helper()
	err := a.eachGroup(a.groups.len(), func(s *linalg.Scatter[float32]) error {
		out = append(out, s.Clone())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// groupOf and placesOf agree, and the groups cover all places: positions in the order of reading.
func TestGroupsPartitionPlaces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := measure.NewLayout(rapid.IntRange(19, 900).Draw(t, "n"))
		n := intervalGroups(l)
		at := 0
		for g := range n {
			from, to := placesOf(g, n, l)
			if from != at || to <= from {
				t.Fatalf("group %d of %d is %d to %d, after %d", g, n, from, to, at)
			}
			for p := from; p < to; p++ {
				if groupOf(p, n, l) != g {
					t.Fatalf("place %d is in group %d, want %d, which is %d to %d", p, groupOf(p, n, l), g, from, to)
				}
			}
			at = to
		}
		if at != l.N {
			t.Fatalf("groups end at %d of %d", at, l.N)
		}
	})
}

// With a Store too, the accumulator obeys the rules for all accumulators, which measuretest tests.
func TestAccumulatorContractWithAStore(t *testing.T) {
	t.Parallel()
	z, zt := smooth(1, 77, 3, 2, 3), smooth(2, 77, 3, 2, 3)
	for i := range zt.Data {
		zt.Data[i] += z.Data[i]
	}
	site := siteOf("NCHW", z)
	site.Layout = measure.Layout{N: 77, Block: 8, Groups: 10} // blocks of 8 consecutive samples
	site.Store = new(boundedStore)
	m := New(Settings{Variance: 0.95, Positions: 100, Null: true, Interval: true})
	measuretest.Run(t, measuretest.Case{Measure: m, Site: site, Clean: z, Transformed: zt, Tolerance: 1e-5})
}

// The error of a Store that is full is returned by the accumulator, on one line, whatever the room
// in the store.
func TestAFullStoreIsAnError(t *testing.T) {
	t.Parallel()
	z := smooth(1, 60, 2, 4, 4)
	unbounded := new(boundedStore)
	site := siteOf("NCHW", z)
	site.Store = unbounded
	scoresOf(t, Defaults(), site, z, z)
	for full := int64(1); full < unbounded.end; full += unbounded.end / 7 {
		site.Store = &boundedStore{limit: full}
		if err := scoreAtOnce(site, z.Shape[0], &measure.Batch{Clean: z, Transformed: z}); !errors.Is(err, errFull) || strings.Contains(err.Error(), "\n") {
			t.Errorf("error %v with room for %d bytes", err, full)
		}
	}
}

// scoreAtOnce feeds n samples in one batch and computes their scores.
func scoreAtOnce(site measure.Site, n int, b *measure.Batch) error {
	for i := range n {
		b.Place, b.Index = append(b.Place, i), append(b.Index, i)
	}
	a, err := New(Defaults()).New(site)
	if err != nil {
		return err
	}
	if err := a.Update(b); err != nil {
		return err
	}
	_, err = a.Scores()
	return err
}

// The sum of the groups, which are kept in float32, equals the moments of an accumulator without an
// interval, which has no groups, to seven digits.
func TestGroupsAddUpToAll(t *testing.T) {
	t.Parallel()
	z, zt := smooth(1, 300, 3, 6, 6), smooth(2, 300, 3, 6, 6)
	site := siteOf("NCHW", z)
	got, err := feed(t, Defaults(), site, z, zt, 16).(*accumulator).withPending()
	if err != nil {
		t.Fatal(err)
	}
	plain := Defaults()
	plain.Interval = false
	want, err := feed(t, plain, site, z, zt, 16).(*accumulator).withPending()
	if err != nil {
		t.Fatal(err)
	}
	if got.total.N != want.total.N {
		t.Fatalf("%d observations, want %d", got.total.N, want.total.N)
	}
	variances := want.total.Diagonal()
	at := 0
	for i, vi := range variances {
		for _, vj := range variances[i:] {
			near(t, "a moment", got.total.Data[at], want.total.Data[at], 1e-7*math.Sqrt(vi*vj))
			at++
		}
	}
}
