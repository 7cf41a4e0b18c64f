package firing

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/measure/measuretest"
	"github.com/noether-ml/noether/measure/resample"
)

// TestCoverageOfFewUnits checks that intervals of the mean invariance of the best units, over draws of
// the channels, hold or have the warning, or that there is none. Each channel has one unit, of
// invariance exp(z / 2), with z normal.
//
// The table of docs/explanation/intervals-and-nulls.md has the coverages of 4,000 draws
// (NOETHER_DRAWS=4000).
func TestCoverageOfFewUnits(t *testing.T) {
	t.Parallel()
	draws := testdata.Draws(400)
	for _, channels := range []int{8, 16, 32, 128} {
		for _, top := range []float64{0.2, 1} {
			r := &run{firing: &firing{settings: Settings{Top: top}}}
			c := measuretest.CoverageOf(draws, 1, func(g *rand.Rand) measuretest.Draw {
				v := make([]float64, channels)
				for i := range v {
					v[i] = math.Exp(g.NormFloat64() / 2)
				}
				best := ranking(v)
				count := topCount(len(v), top)
				full := meanOver(v, best[:count])
				low, high := r.interval(&layerResult{units: &unitSet{channels: channels, maxima: true}}, v, best, full)
				return measuretest.Draw{Value: full, Low: low, High: high, Warned: fewUnits(channels, count)}
			})
			t.Logf("%d channels, the best %v: %s", channels, top, c)
			if c.Hold < 0.95-4*0.011 && c.Warned < 0.999 { // four standard errors of 400 draws
				t.Errorf("%d channels, the best %v: %s", channels, top, c)
			}
		}
	}
}

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
