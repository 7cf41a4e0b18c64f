package probe

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/measure/measuretest"
)

// ridgeDraw returns a statistic of a ridge probe on n simulated samples of d variables, of which
// three fifths train it and a fifth test it. Half of the variance of the target is noise. Without
// parts its interval leaves out the training samples, as for vectors that are too long.
func ridgeDraw(t *testing.T, n, d int, parts bool, statistic func(predicted, want []float64) float64) func(g *rand.Rand) measuretest.Draw {
	return func(g *rand.Rand) measuretest.Draw {
		x, y := make([]float32, n*d), make([]float64, n)
		for i := range n {
			var sum float64
			for k := range d {
				v := g.NormFloat64()
				x[i*d+k] = float32(v)
				sum += v
			}
			y[i] = sum/math.Sqrt(float64(d)) + g.NormFloat64()
		}
		all := dataset.Indices(n)
		p := probeSpec{name: "p", kind: Ridge, input: newProbeInput("", all, features.NewTable(nil, d, x)), target: &target{name: "y", value: y}, train: all[:3*n/5], validation: all[3*n/5 : 4*n/5]}
		r := &run{training: &Training{Seeds: 1, Nulls: NoNulls}, job: &procedure.Job{}}
		set := &probeSet{kind: Ridge, target: p.target, test: all[4*n/5:]}
		set.probes, set.nulls, set.parts = r.seedsAndNulls(p, "y")
		if !parts {
			set.parts = nil
		}
		var predictions [][]float64
		for _, one := range slices.Concat(set.probes, set.parts) {
			weights, err := one.ridge()
			if err != nil {
				t.Fatal(err)
			}
			w, c := weights["layer1.weight"].Data, weights["layer1.bias"].Data[0]
			var predicted []float64
			for _, i := range set.test {
				sum := float64(c)
				for k, v := range x[i*d : (i+1)*d] {
					sum += float64(v) * float64(w[k])
				}
				predicted = append(predicted, sum)
			}
			predictions = append(predictions, predicted)
		}
		want := p.target.values(set.test)
		s := set.estimate(estimate{name: "r2", n: len(set.test), min: math.Inf(-1), max: math.Inf(1), compute: func(network int, samples []int) float64 {
			return statistic(take(predictions[network], samples), take(want, samples))
		}}).score()
		return measuretest.Draw{Value: s.Value, Low: s.Low, High: s.High, Warned: slices.Contains(s.Warnings, oneTraining)}
	}
}

// TestCoverageOfRidge checks that intervals of ridge probes hold, and that they did not without the
// spread over training samples. The table of docs/explanation/intervals-and-nulls.md has the
// coverages of 300 draws, and all sizes with NOETHER_DRAWS=299.
func TestCoverageOfRidge(t *testing.T) {
	t.Parallel()
	const quick = 300
	draws := testdata.Draws(quick)
	for _, n := range []int{100, 200, 500} {
		for _, d := range []int{8, 40} {
			for _, statistic := range []struct {
				name string
				of   func(predicted, want []float64) float64
			}{{"rmse", rmse}, {"r2", r2}} {
				if draws == quick && n+d > 108 { // the larger ones take minutes
					continue
				}
				narrow := measuretest.CoverageOf(draws, 1, ridgeDraw(t, n, d, false, statistic.of))
				c := measuretest.CoverageOf(draws, 1, ridgeDraw(t, n, d, true, statistic.of))
				t.Logf("%s, %d samples of %d variables: %s; before: %s", statistic.name, n, d, c, narrow)
				if c.Hold < 0.95-4*0.0126 || c.Warned > 0 || narrow.Warned < 0.999 || narrow.Hold > c.Hold { // four standard errors of 300 draws
					t.Errorf("%s, %d samples of %d variables: %s; before: %s", statistic.name, n, d, c, narrow)
				}
			}
		}
	}
}
