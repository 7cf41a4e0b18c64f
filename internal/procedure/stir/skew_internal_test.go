package stir

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

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
