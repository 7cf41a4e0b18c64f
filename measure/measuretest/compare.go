package measuretest

import (
	"math"
	"slices"

	"github.com/noether-ml/noether/measure"
)

// same fails unless two accumulators give the same scores and the same per-sample values.
func (c Case) same(t fataler, got, want measure.Accumulator) {
	t.Helper()
	g, err := got.Scores()
	if err != nil {
		t.Fatalf("Scores: %v", err)
	}
	w, err := want.Scores()
	if err != nil {
		t.Fatalf("Scores: %v", err)
	}
	if len(g) != len(w) || len(g) == 0 {
		t.Fatalf("%d scores, want %d and at least one", len(g), len(w))
	}
	for i := range g {
		if !c.sameScore(g[i], w[i]) {
			t.Fatalf("scores differ:\n%+v\n%+v", g[i], w[i])
		}
	}
	if s, ok := got.(measure.Sampler); ok {
		a, b := s.Samples(), want.(measure.Sampler).Samples()
		if !slices.EqualFunc(a, b, c.sameSample) {
			t.Fatalf("per-sample values differ: %v and %v", a, b)
		}
	}
}

func (c Case) sameScore(a, b measure.Score) bool {
	return a.Statistic == b.Statistic && a.Variant == b.Variant && a.Factor == b.Factor && a.N == b.N &&
		slices.Equal(a.Warnings, b.Warnings) &&
		c.near(a.Value, b.Value) && c.near(a.Low, b.Low) && c.near(a.High, b.High) && c.near(a.Null, b.Null) &&
		slices.EqualFunc(a.Replicates, b.Replicates, func(x, y measure.Replicate) bool {
			return x.Left == y.Left && c.near(x.Value, y.Value)
		})
}

func (c Case) sameSample(a, b measure.SampleScore) bool {
	return a.Index == b.Index && a.Statistic == b.Statistic && c.near(a.Value, b.Value)
}

func (c Case) near(a, b float64) bool {
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.IsNaN(a) && math.IsNaN(b)
	}
	tolerance := c.Tolerance
	if tolerance == 0 {
		tolerance = 1e-9
	}
	return math.Abs(a-b) <= tolerance*max(1, math.Abs(a), math.Abs(b))
}
