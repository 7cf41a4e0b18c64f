package measuretest

import (
	"cmp"
	"math"
	"slices"

	"github.com/noether-ml/noether/measure"
)

// same fails the test unless two accumulators have the same scores and per-sample values.
func (c contract) same(t fataler, got, want subject) {
	t.Helper()
	g, err := got.scores()
	if err != nil {
		t.Fatalf("Scores: %v", err)
	}
	w, err := want.scores()
	if err != nil {
		t.Fatalf("Scores: %v", err)
	}
	c.sameScores(t, g, w)
	if a, b := got.samples(), want.samples(); !slices.EqualFunc(a, b, c.sameSample) {
		t.Fatalf("per-sample values differ: %v and %v", a, b)
	}
}

// A and B are the indices of the layers that a score compares.
func (c contract) sameScores(t fataler, got, want []measure.PairScore) {
	t.Helper()
	if len(got) != len(want) || len(got) == 0 {
		t.Fatalf("%d scores, want %d and at least one", len(got), len(want))
	}
	for i, g := range got {
		if w := want[i]; g.A != w.A || g.B != w.B || !c.sameScore(g.Score, w.Score) {
			t.Fatalf("scores differ:\n%+v\n%+v", g, w)
		}
	}
}

func (c contract) sameScore(a, b measure.Score) bool {
	return a.Statistic == b.Statistic && a.Variant == b.Variant && a.Parameter == b.Parameter && a.Factor == b.Factor && a.N == b.N &&
		slices.Equal(a.Warnings, b.Warnings) &&
		c.near(a.Value, b.Value) && c.near(a.Low, b.Low) && c.near(a.High, b.High) && c.near(a.Null, b.Null) &&
		slices.EqualFunc(a.Replicates, b.Replicates, func(x, y measure.Replicate) bool {
			return x.Left == y.Left && c.near(x.Value, y.Value)
		})
}

func (c contract) sameSample(a, b measure.SampleScore) bool {
	return a.Index == b.Index && a.Statistic == b.Statistic && c.near(a.Value, b.Value)
}

// near reports whether numbers differ by at most c.tolerance (0: 1e-9), relative beyond 1, or are
// both NaN; with c.exact they must be equal.
func (c contract) near(a, b float64) bool {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.IsNaN(a) && math.IsNaN(b)
	}
	if c.exact {
		return a == b
	}
	tolerance := cmp.Or(c.tolerance, 1e-9)
	return math.Abs(a-b) <= tolerance*max(1, math.Abs(a), math.Abs(b))
}
