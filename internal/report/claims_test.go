package report

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
	"github.com/noether-ml/noether/scores"
)

// A simulation draws the values of effective invariance of single samples. Values of one sample
// share an effect over models and transformations, as those of real networks do, and some are 0,
// where the predicted class changes.
type simulation struct {
	models, transforms, samples int
	// worse is how much lower the expected score of the first model is, under all transformations.
	worse float64
}

// cells returns the scores of one draw, with intervals and replicates as a run computes them.
func (s simulation) cells(g *rand.Rand) []scores.Cell {
	easy := make([]float64, s.samples)
	for i := range easy {
		easy[i] = g.Float64()
	}
	var out []scores.Cell
	for m := range s.models {
		for t := range s.transforms {
			v := make([]float64, s.samples)
			for i := range v {
				v[i] = 0.5*easy[i] + 0.5*g.Float64()
				if g.Float64() < 0.3*(1-easy[i]) || m == 0 && g.Float64() < s.worse/0.45 { // 0.45 is the mean
					v[i] = 0
				}
			}
			divergence := make([]float64, len(v)) // of the same predictions
			for i := range v {
				divergence[i] = 0.3*(1-v[i]) + 0.1*g.Float64()
			}
			for _, c := range []struct {
				measure, statistic string
				values             []float64
			}{{"effective-invariance", "ei", v}, {"prediction-divergence", "js", divergence}} {
				score := measure.Plain(c.statistic, mean(c.values), len(v))
				score.Replicates, score.Max = resample.MeanWithoutGroups(c.values), 1
				score.Low, score.High = resample.Jackknife(score.Value, score.N, score.Replicates)
				out = append(out, scores.Cell{Model: fmt.Sprint("m", m), Data: "d", Transform: fmt.Sprint("t", t), Measure: c.measure,
					Layers: []scores.Layer{{Depth: scores.NoDepth, Scores: []measure.Score{score}}}})
			}
		}
	}
	return out
}

func mean(v []float64) float64 {
	var sum float64
	for _, x := range v {
		sum += x / float64(len(v))
	}
	return sum
}

// rates returns in which fractions of draws the first screen of a report says that scores differ,
// diff lists a difference between two runs, and two gates fail, of which the second looks at the
// values alone.
func (s simulation) rates(draws int) (screen, diff, gate, valueGate float64) {
	g := rand.New(rand.NewPCG(7, 7))
	conditions := make([]scores.Condition, 2)
	for i, text := range []string{"effective-invariance.ei < -0.02", "effective-invariance.ei < -0.02!"} {
		conditions[i], _ = scores.ParseCondition(text)
	}
	share := 1 / float64(draws)
	for range draws {
		cells := s.cells(g)
		concluded, _ := Conclusions(scores.Table("s", cells), scores.Record{Measures: reporttest.Measures()}, NewReplicates(cells))
		for _, sentence := range concluded {
			if text := sentence.String(); strings.Contains(text, "more than chance") || strings.Contains(text, "lowest under") {
				screen += share
				break
			}
		}
		one := simulation{models: 2, transforms: s.transforms, samples: s.samples, worse: s.worse}.cells(g)
		a, b := one[len(one)/2:], one[:len(one)/2] // the second is the worse one
		for i := range b {
			b[i].Model = a[i].Model
		}
		found := scores.Comparison{SameSamples: func(string) bool { return true }}.Diff(a, b)
		for _, d := range found {
			if d.Significant() {
				diff += share
				break
			}
		}
		for i, rate := range []*float64{&gate, &valueGate} {
			if failing, err := conditions[i].Failing(found); err == nil && len(failing) > 0 {
				*rate += share
			}
		}
	}
	return
}

var simulatedDraws = flag.Int("draws", 200, "number of draws of TestFalseClaims")

// TestFalseClaims checks that on comparisons of equal models the first screen, diff and a gate make
// a false claim in at most 5 %, up to two standard errors, and that they find differences of a
// known size. With -v it prints the rates; those of 3,000 draws (-draws 3000) are in
// docs/explanation/intervals-and-nulls.md.
func TestFalseClaims(t *testing.T) {
	t.Parallel()
	draws := *simulatedDraws
	most := 0.05 + 2*math.Sqrt(0.05*0.95/float64(draws))
	for _, s := range []simulation{{3, 8, 200, 0}, {1, 8, 200, 0}, {2, 40, 200, 0}, {3, 8, 1000, 0}} {
		screen, diff, gate, value := s.rates(draws)
		t.Logf("%+v: first screen %.3f, diff %.3f, gate %.3f, gate on values %.3f", s, screen, diff, gate, value)
		if screen > most || diff > most || gate > most {
			t.Errorf("%+v: the first screen makes a false claim in %.3f of draws, diff in %.3f, the gate in %.3f; want at most %.3f", s, screen, diff, gate, most)
		}
	}
	for _, s := range []simulation{{3, 8, 200, 0.05}, {3, 8, 200, 0.1}, {3, 8, 1000, 0.05}} {
		screen, diff, gate, _ := s.rates(draws)
		t.Logf("%+v: power of the first screen %.3f, diff %.3f, gate %.3f", s, screen, diff, gate)
		if s.worse == 0.1 && (screen < 0.8 || diff < 0.8) {
			t.Errorf("%+v: the first screen sees a difference in %.3f of draws, diff in %.3f", s, screen, diff)
		}
	}
}
