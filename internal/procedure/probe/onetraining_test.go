package probe

import (
	"slices"
	"testing"
)

// TestOneTrainingIsWarnedOf checks that a score of one trained probe, such as that of ridge, says
// that its interval leaves out other trainings, and that those of several, and of no probe, do not.
func TestOneTrainingIsWarnedOf(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		seeds         int
		trained, want bool
	}{"ridge": {1, true, true}, "three seeds": {3, true, false}, "a baseline": {1, false, false}} {
		e := estimate{name: "rmse", n: 40, seeds: c.seeds, trained: c.trained, noNull: true, max: 10, compute: func(s int, samples []int) float64 {
			var sum float64
			for _, i := range samples {
				sum += float64(i%7) + float64(s)/10
			}
			return sum / float64(len(samples))
		}}
		s := e.score()
		if slices.Contains(s.Warnings, oneTraining) != c.want || (s.Spread > 0) != (c.seeds > 1) || (s.Spread > 0) != (s.Freedom == 2) {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
