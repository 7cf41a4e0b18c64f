package seis

import (
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/measuretest"
)

// TestAccumulatorContract checks that scores do not depend on how samples are divided into batches
// and accumulators, the running sums of a measure (see measuretest). Scores are computed from
// second moments in float64. The interval is a jackknife over groups of samples, whose moments are
// float32. So another order of merging changes its ends in the sixth digit.
func TestAccumulatorContract(t *testing.T) {
	t.Parallel()
	null, interval := Settings{Variance: 0.95, Positions: 100, Null: true}, Settings{Variance: 0.95, Positions: 100, Interval: true}
	both := Settings{Variance: 0.95, Positions: 100, Null: true, Interval: true}
	for _, c := range []struct {
		name      string
		settings  Settings
		channels  int
		samples   int
		tolerance float64
	}{
		{"scores and null", null, 3, 77, 1e-9},
		{"interval", interval, 3, 77, 1e-5},
		// The products of two blocks of 64 channels are computed at once, in float32, and with an
		// interval those of four. Each shard may have one of them.
		{"segments of two blocks", null, 64, 77, 1e-5},
		{"segments of two blocks, the last of one sample", null, 64, 73, 1e-5},
		{"segments of four blocks", interval, 64, 77, 1e-5},
		{"blocks of several segments", null, 260, 77, 1e-9},   // of four samples each
		{"segments of parts of blocks", both, 260, 161, 1e-5}, // of two parts of four samples each
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			z, zt := smooth(1, c.samples, c.channels, 3, 3), smooth(2, c.samples, c.channels, 3, 3)
			for i := range zt.Data {
				zt.Data[i] += z.Data[i]
			}
			site := siteOf("NCHW", z)
			site.Layout = measure.Layout{N: c.samples, Block: 8, Groups: 10}
			measuretest.Run(t, measuretest.Case{Measure: New(c.settings), Site: site, Clean: z, Transformed: zt, Tolerance: c.tolerance})
		})
	}
}
