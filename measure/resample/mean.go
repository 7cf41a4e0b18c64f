package resample

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/noether-ml/noether/measure"
)

// An Estimate is a mean with its interval. Low and High are NaN if there is none.
type Estimate struct{ Mean, Low, High float64 }

// Mean returns the mean of independent values of a statistic with the given range, and its interval
// of level 1 - alpha:
//
//   - of values 0 and 1 in the range 0 to 1, Wilson's;
//   - of values -1, 0 and 1 in the range -1 to 1, the differences of paired proportions, that of the
//     fraction of 1 minus the fraction of -1 by the formula of Difference, with the correlation of
//     two fractions of a multinomial distribution;
//   - else Student's, within the range. Of equal values, whose deviation is 0, it is that of a
//     proportion at their place in the range, since no variable with this mean deviates more;
//     without a finite range there is none.
func Mean(values []float64, within measure.Range, alpha float64) Estimate {
	n := len(values)
	if n == 0 {
		return Estimate{math.NaN(), math.NaN(), math.NaN()}
	}
	z := distuv.UnitNormal.Quantile(1 - alpha/2)
	fraction := func(of float64) Estimate {
		k := 0
		for _, v := range values {
			if v == of {
				k++
			}
		}
		p := float64(k) / float64(n)
		low, high := wilson(p, n, z)
		return Estimate{p, low, high}
	}
	whole := !slices.ContainsFunc(values, func(v float64) bool { return v != 0 && v != 1 && v != -1 })
	mean, deviation := stat.MeanStdDev(values, nil)
	switch {
	case whole && within == measure.ZeroToOne:
		return fraction(1)
	case whole && within == measure.MinusOneToOne:
		up, down := fraction(1), fraction(-1)
		var correlation float64
		if up.Mean < 1 && down.Mean < 1 {
			correlation = -math.Sqrt(up.Mean * down.Mean / ((1 - up.Mean) * (1 - down.Mean)))
		}
		return difference(up, down, correlation)
	case n > 1 && deviation > 1e-12*math.Abs(mean):
		half := distuv.StudentsT{Sigma: 1, Nu: float64(n - 1)}.Quantile(1-alpha/2) * deviation / math.Sqrt(float64(n))
		return Estimate{mean, max(within.Low, mean-half), min(within.High, mean+half)}
	case within.Bounded():
		span := within.High - within.Low
		low, high := wilson((mean-within.Low)/span, n, z)
		return Estimate{mean, within.Low + span*low, within.Low + span*high}
	}
	return Estimate{mean, math.NaN(), math.NaN()}
}

// Difference returns the mean of a minus that of b with its interval, if they are independent: the
// distances of the ends of their intervals from the means are added as squares (Zou and Donner
// 2008; for proportions method 10 of Newcombe 1998).
func Difference(a, b Estimate) Estimate { return difference(a, b, 0) }

func difference(a, b Estimate, correlation float64) Estimate {
	half := func(x, y float64) float64 { return math.Sqrt(max(0, x*x+y*y-2*correlation*x*y)) }
	d := a.Mean - b.Mean
	return Estimate{d, d - half(a.Mean-a.Low, b.High-b.Mean), d + half(a.High-a.Mean, b.Mean-b.Low)}
}
