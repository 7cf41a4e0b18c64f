package run

import (
	"testing"

	"github.com/noether-ml/noether/measure"
)

// TestTimedTasksFeedEveryGroup checks which samples are fed to the accumulators of measures (their
// running sums), to estimate the time of a study: some of every jackknife group, in ascending
// order, and at most 640 (20 blocks of 32 samples), whatever the number of samples. A
// measure.Layout divides the samples, in random order, into blocks, and blocks among groups; the
// place of a sample is its position in that order.
func TestTimedTasksFeedEveryGroup(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 5, 60, 200, 640, 50_000} {
		for _, batch := range []int{1, 7, 64} {
			l := measure.NewLayout(n)
			groups := map[int]bool{}
			last, fed := -1, 0
			for _, r := range timedStarts(l, batch) {
				if r[0] <= last || r[1] <= r[0] || r[1] > n {
					t.Fatalf("%d samples, batch %d: the range %v follows position %d", n, batch, r, last)
				}
				for place := r[0]; place < r[1]; place++ {
					groups[l.Group(place)] = true
					fed++
				}
				last = r[1] - 1
			}
			if len(groups) != l.Groups || fed > 640 {
				t.Errorf("%d samples, batch %d: %d of %d groups are fed, with %d samples", n, batch, len(groups), l.Groups, fed)
			}
		}
	}
}
