package main

import (
	"fmt"
	"io"
	"math"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/scores/correlation"
)

// A population is a set of units with correlated means. The points of a unit lie around its mean
// with a standard deviation of spread in x and in y; that of the means is 1.
type population struct {
	units, points int
	correlation   float64 // of the means
	spread        float64
}

// values returns Pearson's r of the points, and Spearman's rho, which is 6 / pi asin(r / 2) for
// normal variables.
func (p population) values() (r, rho float64) {
	r = p.correlation / (1 + p.spread*p.spread)
	return r, 6 / math.Pi * math.Asin(r/2)
}

// draw returns a sample of the population: points of all units. number seeds the draw.
func (p population) draw(number int) []correlation.Point {
	random := seed.Rand(1, "coverage: correlation", number)
	var out []correlation.Point
	for u := range p.units {
		a := random.NormFloat64()
		b := p.correlation*a + math.Sqrt(1-p.correlation*p.correlation)*random.NormFloat64()
		for range p.points {
			out = append(out, correlation.Point{Label: "point", Unit: fmt.Sprint(u), X: a + p.spread*random.NormFloat64(), Y: b + p.spread*random.NormFloat64()})
		}
	}
	return out
}

// covered returns the fractions of samples whose 95 % intervals contain the correlations of the
// population.
func (p population) covered(samples int) (pearson, spearman float64, err error) {
	r, rho := p.values()
	for i := range samples {
		f, err := correlation.Analyse(p.draw(i), correlation.Options{Bootstrap: 1}) // only intervals of fitted lines use it
		if err != nil {
			return 0, 0, err
		}
		if f.Pearson.Low <= r && r <= f.Pearson.High {
			pearson += 1 / float64(samples)
		}
		if f.Spearman.Low <= rho && rho <= f.Spearman.High {
			spearman += 1 / float64(samples)
		}
	}
	return pearson, spearman, nil
}

// correlations prints a Markdown table of the intervals' coverage, a row for each population.
func correlations(out io.Writer, samples int) error {
	if samples < 1 {
		return fmt.Errorf("the number of samples is %d: it must be at least 1", samples)
	}
	if _, err := fmt.Fprintln(out, "| units | points of a unit | r | pearson | spearman |\n| --- | --- | --- | --- | --- |"); err != nil {
		return err
	}
	for _, units := range []int{6, 12, 40} {
		for _, points := range []int{1, 5} {
			for _, correlation := range []float64{0, 0.8} { // of the means of units
				p := population{units, points, correlation, 0.3}
				pearson, spearman, err := p.covered(samples)
				if err != nil {
					return err
				}
				r, _ := p.values()
				if _, err := fmt.Fprintf(out, "| %d | %d | %.2f | %.1f %% | %.1f %% |\n", units, points, r, 100*pearson, 100*spearman); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
