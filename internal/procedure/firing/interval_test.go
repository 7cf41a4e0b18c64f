package firing

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/measure/resample"
)

// TestIntervalOfFewUnits checks the interval of the mean invariance of the best units of few
// channels: there is none if one channel has all, and the degrees of freedom are those of the
// channels that have some. Each channel has one unit.
func TestIntervalOfFewUnits(t *testing.T) {
	t.Parallel()
	interval := func(top float64, v ...float64) (low, high, full float64) {
		r := &run{firing: &firing{settings: Settings{Top: top}}}
		best := ranking(v)
		full = meanOver(v, best[:topCount(len(v), top)])
		low, high = r.interval(&layerResult{units: &unitSet{channels: len(v), maxima: true}}, v, best, full)
		return low, high, full
	}
	if low, high, _ := interval(0.1, 1, 2, 3, 4, 5, 6, 7, 8); !math.IsNaN(low) || !math.IsNaN(high) {
		t.Errorf("the best of 8 units has the interval %v to %v, want none", low, high)
	}
	low, high, full := interval(0.25, 101, 102, 103, 104, 105, 106, 107, 109)
	seven := (high - full) / resample.Refer(1, 7, 1) // by Student's t of 7 degrees of freedom
	if low >= high || seven <= 0 || math.Abs((full-low)-(high-full)) > 1e-12 || resample.Refer(1, 7, 1) < 5 {
		t.Errorf("two of 8 units have the interval %v to %v around %v", low, high, full)
	}
	// All units of 4 channels count: the interval is Student's, and holds in 95 %.
	g := rand.New(rand.NewPCG(3, 9))
	const draws = 4000
	held := 0
	for range draws {
		low, high, _ := interval(1, 9+g.NormFloat64(), 9+g.NormFloat64(), 9+g.NormFloat64(), 9+g.NormFloat64())
		if low <= 9 && 9 <= high {
			held++
		}
	}
	if share := float64(held) / draws; math.Abs(share-0.95) > 0.011 {
		t.Errorf("%.3f of the intervals hold, want 0.95", share)
	}
}
