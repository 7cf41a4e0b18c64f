package seis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/measuretest"
	"github.com/noether-ml/noether/tensor"
)

// byMoments returns the scores of an accumulator of second moments over positions. An observation
// is the h x w positions of one channel for one sample, and a row of the matrix of all
// observations.
func byMoments(t *testing.T, s Settings, site measure.Site, z, zt tensor.Tensor) []measure.Score {
	t.Helper()
	m := New(s).(*seis)
	p, why := featureMapsOf(site.Layer, s.Positions)
	if why != "" {
		t.Fatal(why)
	}
	a := newAccumulator(m, site, p, m.clean.view(site, p))
	feedRange(t, a, z, zt, 0, z.Shape[0])
	scores, err := a.Scores()
	if err != nil {
		t.Fatal(err)
	}
	return scores
}

// sameScores fails the test unless scores differ by at most 1e-6, and replicates and the bounds of
// intervals, which are computed in float32, by 1e-5.
func sameScores(t *testing.T, what string, got, want []measure.Score) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d scores, want %d", what, len(got), len(want))
	}
	ties := has(want[1], warnTies) // then invariance depends on the solver
	same := func(name string, a, b, tolerance float64) {
		if !(math.Abs(a-b) <= tolerance || math.IsNaN(a) && math.IsNaN(b)) {
			t.Errorf("%s: %s is %v, want %v", what, name, a, b)
		}
	}
	for i, w := range want {
		g := got[i]
		if g.Statistic != w.Statistic || g.N != w.N || len(g.Replicates) != len(w.Replicates) {
			t.Fatalf("%s: %+v, want %+v", what, g, w)
		}
		if ties != has(got[1], warnTies) {
			t.Errorf("%s: the warnings are %q, want %q", what, got[1].Warnings, want[1].Warnings)
		}
		if ties && w.Statistic == "invariance" {
			continue
		}
		same(g.Statistic, g.Value, w.Value, 1e-6)
		same(g.Statistic+", null", g.Null, w.Null, 1e-6)
		same(g.Statistic+", low", g.Low, w.Low, 1e-5)
		same(g.Statistic+", high", g.High, w.High, 1e-5)
		for j, r := range g.Replicates {
			same(g.Statistic+", replicate", r.Value, w.Replicates[j].Value, 1e-5)
			if r.Left != w.Replicates[j].Left {
				t.Errorf("%s: a replicate without %d observations, want %d", what, r.Left, w.Replicates[j].Left)
			}
		}
		if len(g.Warnings) != len(w.Warnings) {
			t.Errorf("%s: %s has the warnings %q, want %q", what, g.Statistic, g.Warnings, w.Warnings)
		}
	}
}

// fewPatterns returns feature maps z that are linear combinations of ten patterns, and zt, in which
// combinations of five further patterns are added. With fewer patterns than observations, canonical
// correlations do not tie.
func fewPatterns(n, c, h, w int) (z, zt tensor.Tensor) { return patterned(n, c, h, w, 10, 5) }

// patterned returns feature maps z that are linear combinations of some patterns, and zt, in which
// combinations of those and of further patterns are added.
func patterned(n, c, h, w, some, further int) (z, zt tensor.Tensor) {
	d := h * w
	patterns, g := smooth(1, some+further, 1, h, w), rand.New(rand.NewPCG(2, 0))
	z, zt = tensor.New(n, c, h, w), tensor.New(n, c, h, w)
	for m := range n * c {
		for k := range some + further {
			a, b := float32(g.NormFloat64()), float32(g.NormFloat64())
			for i, v := range patterns.Data[k*d : (k+1)*d] {
				if k < some {
					z.Data[m*d+i] += a * v
				}
				zt.Data[m*d+i] += (2*a + b) * v
			}
		}
	}
	return z, zt
}

// TestRowsGiveTheScoresOfMoments compares the scores of a rowAccumulator, which holds the
// observations themselves, with those of an accumulator of their second moments.
func TestRowsGiveTheScoresOfMoments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		n, channels, side int
		settings          Settings
		edit              func(z, zt tensor.Tensor)
		perSample         bool
		budget            int64
	}{
		"one channel":    {n: 100, channels: 1, side: 20},
		"two channels":   {n: 50, channels: 2, side: 20},
		"small rank":     {n: 100, channels: 1, side: 20, settings: Settings{Variance: 0.7, Positions: 400, Null: true, Interval: true}},
		"all variance":   {n: 60, channels: 1, side: 16, settings: Settings{Variance: 1, Positions: 400, Null: true}},
		"no null":        {n: 60, channels: 1, side: 16, settings: Settings{Variance: 0.9, Positions: 400, Interval: true}},
		"pooled":         {n: 50, channels: 1, side: 32, settings: Settings{Variance: 0.9, Positions: 256, Null: true, Interval: true}},
		"few samples":    {n: 5, channels: 1, side: 8, settings: Settings{Variance: 0.9, Positions: 400}},
		"one sample":     {n: 1, channels: 4, side: 8},
		"per sample":     {n: 60, channels: 1, side: 16, perSample: true},
		"bounded memory": {n: 60, channels: 1, side: 16, budget: 1000},
		"ties": {n: 60, channels: 1, side: 16, edit: func(z, zt tensor.Tensor) {
			copy(zt.Data, permuted(z, flipOrder(16, 16)).Data)
		}},
		"constant positions": {n: 60, channels: 1, side: 16, edit: func(z, zt tensor.Tensor) {
			for i := range z.Data {
				if i%256 < 100 {
					z.Data[i], zt.Data[i] = 7, -3
				}
			}
		}},
		"constant": {n: 60, channels: 1, side: 16, edit: func(z, zt tensor.Tensor) {
			for i := range z.Data {
				zt.Data[i] = 0.1
			}
		}},
		"far from zero": {n: 60, channels: 1, side: 16, edit: func(z, zt tensor.Tensor) {
			for i := range z.Data {
				z.Data[i] += 500
			}
		}},
		"different scales": {n: 60, channels: 1, side: 16, edit: func(z, zt tensor.Tensor) {
			for i := range z.Data {
				zt.Data[i] *= 1e5
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			z, zt := fewPatterns(c.n, c.channels, c.side, c.side)
			if c.edit != nil {
				c.edit(z, zt)
			}
			s := c.settings
			if s == (Settings{}) {
				s = Defaults()
			}
			site := siteOf("NCHW", z)
			site.PerSample, site.Budget = c.perSample, c.budget
			a := feed(t, s, site, z, zt, 7) // in batches of 7 samples
			if _, ok := a.(*rowAccumulator); !ok {
				t.Fatalf("the accumulator of %d observations is a %T, want a *rowAccumulator", c.n*c.channels, a)
			}
			got, err := a.Scores()
			if err != nil {
				t.Fatal(err)
			}
			sameScores(t, name, got, byMoments(t, s, site, z, zt))
		})
	}
}

// TestRowsWithoutSomeSamples checks that the scores of both accumulators are equal if some samples
// could not be read.
func TestRowsWithoutSomeSamples(t *testing.T) {
	t.Parallel()
	z, zt := fewPatterns(80, 1, 20, 20)
	site := siteOf("NCHW", z)
	m := New(Defaults()).(*seis)
	p, _ := featureMapsOf(site.Layer, 400)
	rows, moments := newRowAccumulator(m, site, p), newAccumulator(m, site, p, m.clean.view(site, p))
	for i := range 80 {
		if i%9 == 4 {
			continue
		}
		for _, a := range []measure.Accumulator{rows, moments} {
			if err := a.Update(&measure.Batch{Place: []int{i}, Index: []int{i}, Clean: z.Slice(i, i+1), Transformed: zt.Slice(i, i+1)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := rows.Scores()
	if err != nil {
		t.Fatal(err)
	}
	want, err := moments.Scores()
	if err != nil {
		t.Fatal(err)
	}
	sameScores(t, "without some samples", got, want)
}

// TestRowAccumulatorContract runs the checks of package measuretest: scores do not depend on how
// samples are divided into batches and merged.
func TestRowAccumulatorContract(t *testing.T) {
	t.Parallel()
	z, zt := patterned(27, 1, 11, 11, 3, 2)
	site := siteOf("NCHW", z)
	// Blocks of 2 samples, which are not divided, belong in turn to one of 11 jackknife groups.
	site.Layout = measure.Layout{N: 27, Block: 2, Groups: 11}
	if a := feed(t, Defaults(), site, z, zt, 7); len(scoresOf(t, Defaults(), site, z, zt)["equivariance"].Replicates) == 0 {
		t.Fatalf("no replicates of a %T", a)
	} else if _, rows := a.(*rowAccumulator); !rows {
		t.Fatalf("the accumulator of %d observations is a %T, want a *rowAccumulator", 27, a)
	}
	measuretest.Run(t, measuretest.Case{Measure: New(Defaults()), Site: site, Clean: z, Transformed: zt})
}

// TestMergedRowsAreThoseOfOneRun checks that the scores of shards that are merged in any order are
// exactly those of one accumulator.
func TestMergedRowsAreThoseOfOneRun(t *testing.T) {
	t.Parallel()
	z, zt := fewPatterns(60, 1, 16, 16)
	site := siteOf("NCHW", z)
	want, err := feed(t, Defaults(), site, z, zt, 16).Scores()
	if err != nil {
		t.Fatal(err)
	}
	shards := [][2]int{{0, 17}, {17, 18}, {18, 60}}
	rand.Shuffle(len(shards), func(i, j int) { shards[i], shards[j] = shards[j], shards[i] })
	m := New(Defaults())
	merged, err := m.New(site)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shards {
		part, err := m.New(site)
		if err != nil {
			t.Fatal(err)
		}
		feedRange(t, part, z, zt, s[0], s[1])
		raw, err := part.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		read, err := m.New(site)
		if err != nil {
			t.Fatal(err)
		}
		if err := read.UnmarshalBinary(raw); err != nil {
			t.Fatal(err)
		}
		if err := merged.Merge(read); err != nil {
			t.Fatal(err)
		}
	}
	got, err := merged.Scores()
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range got {
		if w := want[i]; fmt.Sprint(g) != fmt.Sprint(w) {
			t.Errorf("merged from shards: %v, want %v", g, w)
		}
	}
}

// TestRowsAreForFewObservations checks that a rowAccumulator is used only for n observations of d
// positions with 4 n <= d, where it is cheaper than moments (see fewRows). Only accumulators of
// moments borrow memory: during Update they use some of a pool that all accumulators share.
func TestRowsAreForFewObservations(t *testing.T) {
	t.Parallel()
	m := New(Settings{Variance: 0.99, Positions: 1024, Null: true})
	for _, c := range []struct {
		n, channels, side int
		rows              bool
	}{{64, 4, 32, true}, {65, 4, 32, false}, {16, 1, 8, true}, {17, 1, 8, false}} {
		z := tensor.New(c.n, c.channels, c.side, c.side)
		site := siteOf("NCHW", z)
		a, err := m.New(site)
		if err != nil {
			t.Fatal(err)
		}
		if _, rows := a.(*rowAccumulator); rows != c.rows {
			t.Errorf("the accumulator of %v is a %T; want a *rowAccumulator: %t", z.Shape, a, c.rows)
		}
		if want := int64(4 * 2 * len(z.Data)); c.rows && m.Cost(site) != want {
			t.Errorf("%v: %d bytes, want %d", z.Shape, m.Cost(site), want)
		}
		if borrowed := m.(measure.Borrower).Borrowed(site); (borrowed == 0) != c.rows {
			t.Errorf("%v: %d bytes are borrowed; want 0: %t", z.Shape, borrowed, c.rows)
		}
	}
}

// TestRowsOfLargeValues checks that values whose squares overflow float32 have the scores of
// smaller ones: they are scaled in float64.
func TestRowsOfLargeValues(t *testing.T) {
	t.Parallel()
	z, zt := fewPatterns(40, 1, 14, 14)
	site := siteOf("NCHW", z)
	want := scoresOf(t, Defaults(), site, z, zt)
	for i := range z.Data {
		z.Data[i] *= 0x1p90
		zt.Data[i] *= 0x1p90
	}
	for name, s := range scoresOf(t, Defaults(), site, z, zt) {
		if s.Value != want[name].Value {
			t.Errorf("%s is %v, want %v, as of smaller values", name, s.Value, want[name].Value)
		}
	}
}
