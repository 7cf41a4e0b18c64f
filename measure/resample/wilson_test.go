package resample_test

import (
	"math"
	"testing"

	"github.com/noether-ml/noether/measure/resample"
)

// TestWilson compares the bounds with SciPy's binomtest(count, n).proportion_ci(method="wilson").
func TestWilson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		count, n  int
		low, high float64
	}{
		{0, 10, 0, 0.2775327998628892},
		{5, 10, 0.236593090512564, 0.7634069094874361},
		{81, 100, 0.7222115462093562, 0.8748524849023126},
		{10, 10, 0.7224672001371107, 1},
	} {
		low, high := resample.Wilson(float64(c.count)/float64(c.n), c.n)
		if math.Abs(low-c.low) > 1e-9 || math.Abs(high-c.high) > 1e-9 {
			t.Errorf("Wilson for %d of %d = %v to %v, want %v to %v", c.count, c.n, low, high, c.low, c.high)
		}
	}
}

func TestWilsonIsExactAtTheEnds(t *testing.T) {
	t.Parallel()
	for n := 1; n < 1000; n++ {
		if low, _ := resample.Wilson(0, n); low != 0 {
			t.Errorf("the interval of 0 of %d begins at %g, want 0", n, low)
		}
		if _, high := resample.Wilson(1, n); high != 1 {
			t.Errorf("the interval of %d of %d ends at %g, want 1", n, n, high)
		}
	}
}
