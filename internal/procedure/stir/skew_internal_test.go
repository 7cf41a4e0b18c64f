package stir

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/measure/measuretest"
)

// TestCoverageOfDistances checks that intervals of mean distances hold, or have the warning. The values
// are exp(s z), with z normal.
//
// The table of docs/explanation/intervals-and-nulls.md has the coverages of 4,000 draws
// (NOETHER_DRAWS=4000).
func TestCoverageOfDistances(t *testing.T) {
	t.Parallel()
	draws := testdata.Draws(400)
	for _, n := range []int{50, 150, 500} {
		for _, s := range []float64{0.3, 0.7, 1.2} {
			c := measuretest.CoverageOf(draws, 1, func(g *rand.Rand) measuretest.Draw {
				v := make([]float64, n)
				for i := range v {
					v[i] = math.Exp(s * g.NormFloat64())
				}
				m := mean("representation-distance", v, math.Inf(1))
				return measuretest.Draw{Value: m.Value, Low: m.Low, High: m.High, Warned: slices.Contains(m.Warnings, skewedWarning)}
			})
			t.Logf("%d distances, s %v: %s", n, s, c)
			if c.Hold < 0.95-4*0.011 && c.Warned < 0.2 { // four standard errors of 400 draws
				t.Errorf("%d distances, s %v: %s", n, s, c)
			}
		}
	}
}

// TestSkewedDistances checks that the mean of few skewed values has a warning, that of values that
// are not skewed, or of many, has none, and that intervals without the warning hold. The values are
// exp(s z), with z normal, whose mean is exp(s² / 2).
func TestSkewedDistances(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(8, 3))
	const draws, n = 1500, 150
	hold := func(s float64) (held, warned float64) {
		want, unwarned := math.Exp(s*s/2), 0.
		for range draws {
			v := make([]float64, n)
			for i := range v {
				v[i] = math.Exp(s * g.NormFloat64())
			}
			m := mean("representation-distance", v, math.Inf(1))
			if slices.Contains(m.Warnings, skewedWarning) {
				warned++
				continue
			}
			unwarned++
			if m.Low <= want && want <= m.High {
				held++
			}
		}
		return held / unwarned, warned / draws
	}
	held, warned := hold(0.3)
	t.Logf("s 0.3: %.3f hold, %.3f have a warning", held, warned)
	if warned > 0.01 || held < 0.93 {
		t.Errorf("hardly skewed: %.3f of the intervals have a warning, and %.3f of the others hold", warned, held)
	}
	held, warned = hold(1.2)
	t.Logf("s 1.2: %.3f hold, %.3f have a warning", held, warned)
	if warned < 0.8 {
		t.Errorf("skewed: %.3f of the intervals have a warning", warned)
	}
}
