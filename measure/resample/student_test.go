package resample_test

import (
	"math"
	"testing"

	"github.com/noether-ml/noether/measure/resample"
)

// TestStudent compares the interval of 1, 2 and 6 with the value by hand: the standard deviation is
// sqrt(7), and the 97.5 % quantile of Student's t with two degrees of freedom is 4.302653.
func TestStudent(t *testing.T) {
	t.Parallel()
	mean, half := resample.Student([]float64{1, 2, 6})
	if want := 4.302653 * math.Sqrt(7.0/3); mean != 3 || math.Abs(half-want) > 1e-5 {
		t.Errorf("%v ± %v, want 3 ± %v", mean, half, want)
	}
	if mean, half := resample.Student([]float64{5}); mean != 5 || !math.IsNaN(half) {
		t.Errorf("one value: %v ± %v, want 5 ± NaN", mean, half)
	}
	if mean, half := resample.Student(nil); !math.IsNaN(mean) || !math.IsNaN(half) {
		t.Errorf("no value: %v ± %v, want NaN ± NaN", mean, half)
	}
}

// TestWelch compares the difference of two means, y minus x, and half the width of its interval
// with scipy: t.ppf(0.975, 4.2551) standard errors, with the degrees of freedom of
// ttest_ind(equal_var=False).
func TestWelch(t *testing.T) {
	t.Parallel()
	x, y := []float64{1, 2, 6}, []float64{4, 9, 3, 8, 7}
	difference, half := resample.Welch(x, y)
	if want := 5.1978426298; math.Abs(difference-3.2) > 1e-12 || math.Abs(half-want) > 1e-8 {
		t.Errorf("%v ± %v, want 3.2 ± %v", difference, half, want)
	}
	if back, same := resample.Welch(y, x); math.Abs(back+difference) > 1e-12 || math.Abs(same-half) > 1e-12 {
		t.Errorf("exchanged: %v ± %v, want %v ± %v", back, same, -difference, half)
	}
	if difference, half := resample.Welch(x[:1], y); math.Abs(difference-5.2) > 1e-12 || !math.IsNaN(half) {
		t.Errorf("one value: %v ± %v, want 5.2 ± NaN", difference, half)
	}
	if difference, half := resample.Welch([]float64{2, 2}, []float64{5, 5, 5}); difference != 3 || half != 0 {
		t.Errorf("equal values: %v ± %v, want 3 ± 0", difference, half)
	}
}
