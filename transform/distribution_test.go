package transform

import (
	"math"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
)

// TestDistribution checks that draws from a uniform distribution are in its range, however wide or
// narrow, and have its mean.
func TestDistribution(t *testing.T) {
	t.Parallel()
	r := seed.Rand(1)
	var sum float64
	const n = 10000
	for range n {
		v := Uniform(-15, 5).Draw(r)
		if v < -15 || v >= 5 {
			t.Fatalf("Uniform(-15, 5) drew %g, outside of [-15, 5)", v)
		}
		sum += v / n
	}
	if !near(sum, -5, 0.3) { // 0.3 is some five standard errors
		t.Errorf("the mean is %g, want -5", sum)
	}
	low, high := 0.1, math.Nextafter(0.1, 1) // no number lies between
	for range 1000 {
		if v := Uniform(low, high).Draw(r); v != low && v != high {
			t.Fatalf("Uniform(%g, %g) drew %g, outside of the range by rounding", low, high, v)
		}
	}
	if v := Uniform(-math.MaxFloat64, math.MaxFloat64).Draw(r); math.IsInf(v, 0) {
		t.Errorf("the widest range drew %g, want a finite number", v)
	}
	if a, b := Fixed(30).String(), Uniform(-0.5, 15).String(); a != "30" || b != "[-0.5, 15]" {
		t.Errorf("Fixed(30) and Uniform(-0.5, 15) are written as %s and %s, want 30 and [-0.5, 15]", a, b)
	}
}
