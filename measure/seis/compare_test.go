package seis

import (
	"strings"
	"testing"

	"github.com/noether-ml/noether/tensor"
)

// TestCompareGivesTheScoresOfAnAccumulator checks that Compare, for activations z and those of the
// transformed inputs, zt, in memory, gives the scores of the accumulator that is fed in batches. In
// seis_test.go are smooth(seed, samples, channels, rows, columns), which returns random feature
// maps, and scoresOf, which feeds the accumulator.
func TestCompareGivesTheScoresOfAnAccumulator(t *testing.T) {
	t.Parallel()
	z, zt := smooth(1, 100, 3, 5, 5), smooth(2, 100, 3, 5, 5)
	for i := range zt.Data {
		zt.Data[i] += z.Data[i]
	}
	want := scoresOf(t, Defaults(), siteOf("NCHW", z), z, zt)
	got, err := Compare(z, zt, Defaults())
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 5 { // equivariance, invariance, rank, and the nulls of the first two
		t.Fatalf("%d scores, want 5", len(got))
	}
	for _, s := range got {
		// Compare draws another order of the samples, so the shuffled pairs of the null differ.
		tolerance := 1e-6
		if strings.HasPrefix(s.Statistic, "null-") {
			tolerance = 0.05
		}
		near(t, s.Statistic, s.Value, want[s.Statistic].Value, tolerance)
		if s.Statistic == "equivariance" && !(s.Low < s.Value && s.Value < s.High && s.Null < s.Low) {
			t.Errorf("equivariance %v, interval %v to %v, null %v; want the value inside the interval, and the null below it", s.Value, s.Low, s.High, s.Null)
		}
	}
}

func TestCompareErrors(t *testing.T) {
	t.Parallel()
	z := smooth(1, 10, 3, 5, 5)
	for name, c := range map[string]struct {
		z, zt tensor.Tensor
		want  string
	}{
		"without space":    {tensor.New(10, 3), tensor.New(10, 3), "b x c x h x w"},
		"different shapes": {z, z.Slice(0, 9), "one shape"},
		"no samples":       {z.Slice(0, 0), z.Slice(0, 0), "too few"},
		"one position":     {tensor.New(10, 3, 1, 1), tensor.New(10, 3, 1, 1), "single position"},
	} {
		if _, err := Compare(c.z, c.zt, Defaults()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}
