package scores

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/measuretest"
	"github.com/noether-ml/noether/measure/resample"
)

// breakingDraw returns the breaking point of the accuracy of n samples that a model gets right up to
// an angle of their own. A tenth is wrong without a transformation.
func breakingDraw(t *testing.T, n int, tolerance Tolerance, values ...float64) func(g *rand.Rand) measuretest.Draw {
	return func(g *rand.Rand) measuretest.Draw {
		limit := make([]float64, n)
		for i := range limit {
			if limit[i] = 35 + 12*g.NormFloat64(); g.Float64() < 0.1 {
				limit[i] = -1
			}
		}
		score := func(statistic string, angle float64) measure.Score {
			right := make([]float64, n)
			var sum float64
			for i := range right {
				if limit[i] >= angle {
					right[i], sum = 1, sum+1
				}
			}
			s := measure.Plain(statistic, sum/float64(n), n)
			s.Low, s.High = resample.Wilson(s.Value, n)
			s.Replicates = resample.MeanWithoutGroups(right)
			return s
		}
		var cells []Cell
		for _, v := range values {
			cells = append(cells, Cell{Model: "m", Data: "d", Transform: "tilt", Parameter: fmt.Sprint(v), Measure: "accuracy",
				Layers: []Layer{{Depth: NoDepth, Scores: []measure.Score{score("clean", 0), score("moved", v)}}}})
		}
		points, err := BreakingPointsOfCells(cells, tolerance, zero)
		if err != nil || len(points) != 1 || points[0].State != Found {
			t.Fatalf("%v, %v", points, err)
		}
		b := points[0]
		return measuretest.Draw{Value: b.Strength, Low: b.Low, High: math.Min(b.High, b.Largest)}
	}
}

// TestCoverageOfBreakingPoints checks that intervals of breaking points hold, of absolute and of
// relative tolerances. The table of docs/explanation/intervals-and-nulls.md has the coverages of
// 2,000 draws (NOETHER_DRAWS=2000).
func TestCoverageOfBreakingPoints(t *testing.T) {
	t.Parallel()
	const quick = 400
	draws := testdata.Draws(quick)
	for _, text := range []string{"accuracy.moved >= 0.6", "accuracy.moved >= 80%"} {
		tolerance, err := ParseTolerance(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{50, 200, 1000} {
			if draws == quick && n > 200 {
				continue
			}
			for name, values := range map[string][]float64{"four values": {15, 30, 45, 60}, "thirty": steps(2, 60, 2)} {
				c := measuretest.CoverageOf(draws, 1, breakingDraw(t, n, tolerance, values...))
				t.Logf("%s, %d samples, %s: %s", text, n, name, c)
				if c.Hold < 0.95-4*0.011 || c.Width > 1.5 { // four standard errors of 400 draws
					t.Errorf("%s, %d samples, %s: %s", text, n, name, c)
				}
			}
		}
	}
}

func steps(low, high, by float64) (out []float64) {
	for v := low; v <= high; v += by {
		out = append(out, v)
	}
	return out
}
