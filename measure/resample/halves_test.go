package resample

import (
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/measure"
)

// TestHalfSamplesAreOrthogonal checks that every half-sample has half of the groups of samples, and
// that any two half-samples share half of theirs. InHalf(i, k) reports whether group k is in
// half-sample i.
func TestHalfSamplesAreOrthogonal(t *testing.T) {
	t.Parallel()
	for i := range HalfSamples {
		for j := range HalfSamples {
			var size, common int
			for k := range HalfGroups {
				if InHalf(i, k) {
					size++
					if InHalf(j, k) {
						common++
					}
				}
			}
			want := HalfGroups / 4
			if i == j {
				want = HalfGroups / 2
			}
			if size != HalfGroups/2 || common != want {
				t.Errorf("half-sample %d has %d groups, of which %d are in half-sample %d; want %d and %d", i, size, common, j, HalfGroups/2, want)
			}
		}
	}
}

// TestHalfSampleIntervalCoverage checks that intervals from half-samples contain the mean of a
// normal distribution in 95 % of samples. A replicate is here the mean of one half of the groups,
// with the other half left out (Left).
func TestHalfSampleIntervalCoverage(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(1, 1))
	const samples = 20000
	covered := 0
	for range samples {
		var groups [HalfGroups]float64
		var mean float64
		for i := range groups {
			groups[i] = g.NormFloat64()
			mean += groups[i] / HalfGroups
		}
		var replicates []measure.Replicate
		for half := range HalfSamples {
			var sum float64
			for i, v := range groups {
				if InHalf(half, i) {
					sum += v
				}
			}
			replicates = append(replicates, measure.Replicate{Value: sum / (HalfGroups / 2), Left: HalfGroups / 2})
		}
		WidenHalves(replicates)
		if low, high := Jackknife(mean, HalfGroups, replicates); low <= 0 && 0 <= high {
			covered++
		}
	}
	if share := float64(covered) / samples; share < 0.945 || share > 0.955 { // three standard errors
		t.Errorf("%.2f %% of the intervals contain the mean, want 95 %%", 100*share)
	}
}
