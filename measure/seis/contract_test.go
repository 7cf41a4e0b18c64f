package seis

import (
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/measuretest"
)

// TestAccumulatorContract checks that scores do not depend on how samples are divided into batches
// and accumulators, the running sums of a measure (see measuretest). Scores are computed from
// second moments in float64. The interval is a jackknife over groups of samples, whose moments are
// float32. So another order of merging changes its ends in the sixth digit. The null is the scores
// of shuffled pairs.
func TestAccumulatorContract(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		settings  Settings
		channels  int
		tolerance float64
	}{
		{"scores and null", Settings{Variance: 0.95, Positions: 100, Null: true}, 3, 1e-9},
		{"blocks of samples whose products are added in several segments", Settings{Variance: 0.95, Positions: 100, Null: true}, 260, 1e-9},
		{"interval", Settings{Variance: 0.95, Positions: 100, Interval: true}, 3, 1e-5},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			z, zt := smooth(1, 77, c.channels, 3, 3), smooth(2, 77, c.channels, 3, 3)
			for i := range zt.Data {
				zt.Data[i] += z.Data[i]
			}
			site := siteOf("NCHW", z)
			// 77 samples in blocks of 8. With 260 channels, the products of four samples at a time
			// (a segment) are added.
			site.Layout = measure.Layout{N: 77, Block: 8, Groups: 10}
			measuretest.Run(t, measuretest.Case{Measure: New(c.settings), Site: site, Clean: z, Transformed: zt, Tolerance: c.tolerance})
		})
	}
}
