package resample_test

import (
	"math"
	"testing"

	"github.com/noether-ml/noether/measure/resample"
)

// TestStudent compares the interval of 1, 2 and 6 with the value by hand: the standard deviation is
// sqrt(7), and t of two degrees of freedom is 4.302653.
func TestStudent(t *testing.T) {
	t.Parallel()
	mean, half := resample.Student([]float64{1, 2, 6})
	if want := 4.302653 * math.Sqrt(7.0/3); mean != 3 || math.Abs(half-want) > 1e-5 {
		t.Errorf("%v ± %v, want 3 ± %v", mean, half, want)
	}
	if mean, half := resample.Student([]float64{5}); mean != 5 || !math.IsNaN(half) {
		t.Errorf("one value: %v ± %v", mean, half)
	}
	if mean, half := resample.Student(nil); !math.IsNaN(mean) || !math.IsNaN(half) {
		t.Errorf("no value: %v ± %v", mean, half)
	}
}
