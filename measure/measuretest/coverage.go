package measuretest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat"
)

// A Coverage says how often intervals of simulated scores hold their mean over all draws, an
// estimate of the expected score.
type Coverage struct {
	Draws  int
	Hold   float64 // fraction of the intervals that hold it
	Error  float64 // standard error of Hold by the number of draws
	Width  float64 // mean half-width / (1.96 standard deviations of the scores)
	None   float64 // fraction of draws without an interval
	Warned float64 // fraction of draws with a warning on the interval
}

func (c Coverage) String() string {
	return fmt.Sprintf("%.1f %% hold (± %.1f), width %.2f, %.0f %% without an interval, %.0f %% with a warning", 100*c.Hold, 100*c.Error, c.Width, 100*c.None, 100*c.Warned)
}

// A Draw is a score of one draw, with its interval and whether that has a warning.
type Draw struct {
	Value, Low, High float64
	Warned           bool
}

// CoverageOf draws scores.
func CoverageOf(draws int, seed uint64, draw func(g *rand.Rand) Draw) Coverage {
	g := rand.New(rand.NewPCG(seed, 1))
	all := make([]Draw, draws)
	values := make([]float64, draws)
	for i := range all {
		all[i] = draw(g)
		values[i] = all[i].Value
	}
	mean, deviation := stat.MeanStdDev(values, nil)
	c := Coverage{Draws: draws}
	var with, width float64
	for _, d := range all {
		if d.Warned {
			c.Warned += 1 / float64(draws)
		}
		if math.IsNaN(d.Low) {
			c.None += 1 / float64(draws)
			continue
		}
		with++
		width += (d.High - d.Low) / 2
		if d.Low <= mean && mean <= d.High {
			c.Hold++
		}
	}
	c.Hold /= with
	c.Width = width / with / (1.96 * deviation)
	c.Error = math.Sqrt(c.Hold * (1 - c.Hold) / with)
	return c
}
