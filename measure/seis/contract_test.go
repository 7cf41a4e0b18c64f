package seis

import (
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/measuretest"
)

// Scores are computed from moments in float64, which do not depend on batches. The moments of the
// groups of the interval are kept in float32, so another order of merging changes intervals in the
// sixth digit.
func TestAccumulatorContract(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		settings  Settings
		channels  int
		tolerance float64
	}{
		{"scores and null", Settings{Variance: 0.95, Positions: 100, Null: true}, 3, 1e-9},
		{"several segments in a block", Settings{Variance: 0.95, Positions: 100, Null: true}, 260, 1e-9},
		{"interval", Settings{Variance: 0.95, Positions: 100, Interval: true}, 3, 1e-5},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			z, zt := smooth(1, 77, c.channels, 3, 3), smooth(2, 77, c.channels, 3, 3)
			for i := range zt.Data {
				zt.Data[i] += z.Data[i]
			}
			site := siteOf("NCHW", z)
			site.Layout = measure.Layout{N: 77, Block: 8, Groups: 10}
			measuretest.Run(t, measuretest.Case{Measure: New(c.settings), Site: site, Clean: z, Transformed: zt, Tolerance: c.tolerance})
		})
	}
}
