package seis

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// TestSegments checks that parts divide each block of a layout into ranges of size to 2 size - 1
// samples, or fewer in a shorter block, and that segments, whose products are added at once, join
// successive parts of one group until they have enough observations.
func TestSegments(t *testing.T) {
	t.Parallel()
	for block := 1; block <= 40; block++ {
		for _, n := range []int{1, 7, 31, 32, 33, 100, 333, 900} {
			for _, channels := range []int{1, 8, 15, 16, 22, 40, 63, 64, 96, 100, 128, 192, 256, 300, 341, 400, 511, 512, 2048} {
				for _, groups := range []int{0, 8} {
					checkSegments(t, measure.Layout{N: n, Block: block, Groups: 3}, channels, groups)
				}
			}
		}
	}
}

// checkSegments checks the segments of a layout for TestSegments.
func checkSegments(t *testing.T, l measure.Layout, channels, groups int) {
	t.Helper()
	p := newParts(l, channels, groups)
	rows := 1024 // observations that a segment should have
	if groups > 0 {
		rows = 2048
	}
	group := func(place int) int {
		if groups == 0 {
			return 0
		}
		return groupOf(place, groups, l)
	}
	part, next, longest := 0, p.start(1), 0
	for from := 0; from < l.N; {
		start, to := p.segment(from)
		if start != from || to <= from || to > l.N || group(from) != group(to-1) || to-from > p.longest() {
			t.Fatalf("the segment of place %d is %d to %d, of the groups %d to %d; the longest has %d samples", from, start, to, group(from), group(to-1), p.longest())
		}
		parts := 0
		for place := from; place < to; place++ {
			if a, b := p.segment(place); a != from || b != to {
				t.Fatalf("place %d is in the segment %d to %d, want %d to %d", place, a, b, from, to)
			}
			if parts == 0 || place == next {
				if parts > 0 {
					part++
				}
				parts++
				next = p.start(part + 1)
				length, rest := next-place, min(l.Block, l.N-place/l.Block*l.Block) // of the part and its block
				if p.start(part) != place || place/l.Block != (next-1)/l.Block || length < min(p.size, rest) || length >= 2*p.size {
					t.Fatalf("part %d has the places %d to %d of blocks of %d, in parts of %d", part, place, next, l.Block, p.size)
				}
			}
			if p.index(place) != part {
				t.Fatalf("place %d is in part %d, want %d", place, p.index(place), part)
			}
		}
		if next != to || p.count(from, to) != parts {
			t.Fatalf("the segment %d to %d has %d parts, want %d; the next part starts at %d", from, to, p.count(from, to), parts, next)
		}
		// Only the last segment of a block with several parts, or of a group, may have fewer parts.
		need := 1
		if n := p.size * channels; n >= 512 {
			need = (rows + n - 1) / n
		}
		divided := l.Block/p.size > 1 // blocks have several parts
		ends := to == l.N || group(to) != group(from) || divided && to%l.Block == 0
		if divided && from/l.Block != (to-1)/l.Block {
			t.Fatalf("the segment %d to %d of parts of blocks of %d is of two blocks", from, to, l.Block)
		}
		if parts > need || parts < need && !ends {
			t.Fatalf("a segment of %d parts of %d samples of %d channels, want %d", parts, p.size, channels, need)
		}
		longest = max(longest, to-from)
		from, part = to, part+1
		next = p.start(part + 1)
	}
	// A part with the remainder of a block may not be the last of a full segment.
	if groups == 0 && l.N >= p.joined*l.Block && p.longest() >= longest+p.size {
		t.Fatalf("the longest segment has %d samples, want fewer than %d more: %d", longest, p.size, p.longest())
	}
}

// TestPairsOfParts checks that the shuffled pairs of a segment, from which the null is computed,
// are those of each of its parts, wherever segments begin: they do not depend on how parts are
// joined. Parts here have 4, 4 and 5 samples, or are blocks of 13, of which several form a segment
// with an interval.
func TestPairsOfParts(t *testing.T) {
	t.Parallel()
	for _, channels := range []int{260, 40} {
		l := measure.Layout{N: 52, Block: 13, Groups: 20}
		s := Defaults()
		a := &accumulator{measure: &seis{settings: s}, site: measure.Site{Layout: l, Key: measure.Key{Seed: 3}}, maps: featureMaps{channels: channels}}
		a.parts = a.measure.parts(l, channels)
		if a.parts.joined < 2 {
			t.Fatalf("%d channels: parts are not joined", channels)
		}
		part := 0
		for from := 0; from < l.N; {
			var c segment
			c.from, c.to = a.parts.segment(from)
			for range a.parts.count(c.from, c.to) {
				c.counts = append(c.counts, a.parts.start(part+len(c.counts)+1)-a.parts.start(part+len(c.counts)))
			}
			for _, got := range a.shuffledPairs(c) {
				start := a.parts.start(part)
				want := newShuffledPairs(a.site.Key, start, a.parts.start(part+1)-start, channels)
				if !slices.Equal(got.order, want.order) || !slices.Equal(got.match, want.match) {
					t.Errorf("%d channels: part %d, from place %d, has other pairs in its segment", channels, part, start)
				}
				part++
			}
			from = c.to
		}
		if last := a.parts.index(l.N - 1); part != last+1 {
			t.Errorf("%d channels: pairs of %d parts, want %d", channels, part, last+1)
		}
	}
}

// TestSegmentsTakeTheMemoryOfCost checks that the memory that Cost counts for the observations of a
// segment is what an accumulator allocates. An observation has a clean and a transformed map.
func TestSegmentsTakeTheMemoryOfCost(t *testing.T) {
	t.Parallel()
	const channels, side = 64, 4
	z := smooth(1, 400, channels, side, side)
	site := siteOf("NCHW", z)
	var rows [2]int64
	for i, interval := range []bool{false, true} {
		m := New(Settings{Variance: 0.99, Positions: 100, Interval: interval}).(*seis)
		p, _ := featureMapsOf(site.Layer, 100)
		a := newAccumulator(m, site, p, m.clean.view(site, p))
		if err := a.Update(&measure.Batch{Place: []int{0}, Index: []int{0}, Clean: z.Slice(0, 1), Transformed: z.Slice(0, 1)}); err != nil {
			t.Fatal(err)
		}
		rows[i] = single * int64(len(a.segment.rows))
		const d = side * side
		if other := int64(double*(d*(2*d+1)+4*d) + single*d*d); m.memory(site, p).base != rows[i]+other {
			t.Errorf("interval %v: a cost of %d bytes, want %d of a segment and %d of all else", interval, m.memory(site, p).base, rows[i], other)
		}
	}
	if rows[1] <= rows[0] {
		t.Errorf("segments of %d bytes with an interval and %d without; they should be longer with it", rows[1], rows[0])
	}
}

// TestPartnersAreOtherSamplesAndOtherChannels checks the pairs of observations, each of one sample
// and channel, from which the null is computed. Observation i channels + c is channel c of sample
// i.
func TestPartnersAreOtherSamplesAndOtherChannels(t *testing.T) {
	t.Parallel()
	const firstPlace = 64 // of the segment, the samples whose observations are paired
	rapid.Check(t, func(t *rapid.T) {
		samples, channels := rapid.IntRange(2, 32).Draw(t, "samples"), rapid.IntRange(1, 40).Draw(t, "channels")
		key := measure.Key{Seed: rapid.Uint64().Draw(t, "seed"), Data: "d", Transform: "t"}
		pairs := newShuffledPairs(key, firstPlace, samples, channels).order
		if len(pairs) != samples*channels {
			t.Fatalf("%d partners of %d samples with %d channels", len(pairs), samples, channels)
		}
		sorted := slices.Clone(pairs)
		slices.Sort(sorted)
		for i, j := range pairs {
			if sorted[i] != i {
				t.Fatalf("not a permutation: %v", pairs)
			}
			if i/channels == j/channels {
				t.Fatalf("sample %d is its own partner", i/channels)
			}
			if channels > 1 && i%channels == j%channels {
				t.Fatalf("channel %d is its own partner", i%channels)
			}
		}
		if again := newShuffledPairs(key, firstPlace, samples, channels); !slices.Equal(pairs, again.order) {
			t.Fatal("two draws for the same key differ")
		}
	})
	order := func(seed uint64, from int) []int {
		return newShuffledPairs(measure.Key{Seed: seed}, from, 32, 16).order
	}
	if slices.Equal(order(1, 0), order(2, 0)) || slices.Equal(order(1, 0), order(1, 32)) {
		t.Error("the draw does not depend on the seed and the segment")
	}
	if newShuffledPairs(measure.Key{}, 0, 1, 5) != nil {
		t.Error("a single sample has a partner, want none")
	}
}

// TestPooledGrid checks the size to which a grid of positions is pooled if it has more than a
// limit.
func TestPooledGrid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		grid  []int
		limit int
		want  []int
	}{
		{[]int{56, 56}, 3136, []int{56, 56}},
		{[]int{112, 112}, 3136, []int{56, 56}},
		{[]int{57, 56}, 3136, []int{56, 56}},
		{[]int{224, 112}, 3136, []int{79, 39}},
		{[]int{1, 9000}, 3136, []int{1, 3136}},
		{[]int{9000, 1}, 3136, []int{3136, 1}},
		{[]int{8000}, 3136, []int{3136}},
		{[]int{5, 5}, 2, []int{1, 2}},
		{[]int{56, 56}, 1024, []int{28, 28}},
		{[]int{112, 112}, 1024, []int{28, 28}},
		{[]int{48, 64}, 1024, []int{24, 32}},
		{[]int{40, 40}, 1024, []int{32, 32}},
		{[]int{57, 57}, 1024, []int{32, 32}},
	} {
		if got := pooledGrid(c.grid, c.limit); !slices.Equal(got, c.want) {
			t.Errorf("%v pooled to at most %d positions: %v, want %v", c.grid, c.limit, got, c.want)
		}
	}
}

// TestCleanProductsAreShared updates three accumulators (running sums) of layers of one name in
// turn: two of one model with the same clean activations (those of the untransformed input), one of
// another model. All share one store of the products of clean activations, in which a product is
// found by a hash of the activations. The scores must equal those of accumulators that are updated
// separately. smooth(seed, 60, 6, 5, 5) returns random activations of 60 samples, 6 channels and
// 5 x 5 positions.
func TestCleanProductsAreShared(t *testing.T) {
	t.Parallel()
	z, other := smooth(1, 60, 6, 5, 5), smooth(9, 60, 6, 5, 5)
	inputs := [][2]tensor.Tensor{{z, smooth(2, 60, 6, 5, 5)}, {z, smooth(3, 60, 6, 5, 5)}, {other, z}}
	m := New(Defaults())
	var accumulators []measure.Accumulator
	for _, views := range inputs { // views: clean and transformed
		a, err := m.New(siteOf("NCHW", views[0]))
		if err != nil {
			t.Fatal(err)
		}
		accumulators = append(accumulators, a)
	}
	for lo := 0; lo < 60; lo += 15 {
		for i, views := range inputs {
			b := &measure.Batch{Clean: views[0].Slice(lo, lo+15), Transformed: views[1].Slice(lo, lo+15)}
			for p := lo; p < lo+15; p++ {
				b.Place, b.Index = append(b.Place, p), append(b.Index, p)
			}
			if err := accumulators[i].Update(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	if a, b, c := accumulators[0].(*accumulator), accumulators[1].(*accumulator), accumulators[2].(*accumulator); a.clean == nil || a.clean != b.clean || a.clean != c.clean {
		t.Error("the accumulators do not share a store of clean products")
	}
	for i, views := range inputs {
		want := scoresOf(t, Defaults(), siteOf("NCHW", views[0]), views[0], views[1])
		scores, err := accumulators[i].Scores()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range scores {
			near(t, s.Statistic, s.Value, want[s.Statistic].Value, 1e-9)
		}
	}
}
