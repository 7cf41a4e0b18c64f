// Package correlation measures how well one score predicts another, over many models on one test
// set or over many test sets for one model. Each model or test set is a point of the correlation.
// For instance, are more invariant models more accurate, and how accurate is a model on unlabelled
// data?
//
// It follows Deng et al. 2022, section 4.3. Their effective invariance, X in the example, is a
// score of how well predictions are preserved when the input is transformed. Accuracies are
// transformed to the logit scale, which expands the range near 1. The strength of the relation is
// given by Pearson's r and Spearman's rho, with intervals by Fisher's transformation. The line is
// Huber's M-estimator, which is robust against outliers. Its band holds 95 % of the lines fitted to
// resampled points.
//
//	points := []correlation.Point{{Label: "resnet20", X: 0.61, Y: 0.81, N: 10000}, ...}
//	fit, err := correlation.Analyse(points, correlation.Options{Logit: true, Seed: 1})
//	fmt.Println(fit.Pearson, fit.Line.Slope)
//	accuracy := fit.Predict(0.55) // with an interval
package correlation

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// A Coefficient is a correlation in [-1, 1] with its 95 % interval, NaN if undefined.
type Coefficient struct {
	Value, Low, High float64
	N                int // number of independent units: points that belong together count as one
}

// String returns the coefficient with its interval.
func (c Coefficient) String() string {
	return fmt.Sprintf("%+.3f [%+.3f, %+.3f] (n = %d)", c.Value, c.Low, c.High, c.N)
}

// Pearson returns the linear correlation of x and y, which must have the same length,
//
//	r = sum (x - mx)(y - my) / sqrt(sum (x - mx)^2 sum (y - my)^2),
//
// and NaN if either is constant. The interval is Fisher's, atanh r +- 1.96 / sqrt(n - 3) on the
// scale of atanh, for n > 3 and |r| < 1.
func Pearson(x, y []float64) Coefficient { return pearsonOf(x, y, len(x)) }

// pearsonOf is Pearson for points of so many independent units, the n of the interval.
func pearsonOf(x, y []float64, units int) Coefficient { return fisher(pearson(x, y), units, 1) }

// Spearman returns the rank correlation of x and y: Pearson's r of their ranks, where ties share
// their mean rank. The interval is Fisher's with the variance of Bonett and Wright 2000, (1 + rho^2
// / 2) / (n - 3).
func Spearman(x, y []float64) Coefficient { return spearmanOf(x, y, len(x)) }

func spearmanOf(x, y []float64, units int) Coefficient {
	rho := pearson(ranks(x), ranks(y))
	return fisher(rho, units, 1+rho*rho/2)
}

func pearson(x, y []float64) float64 {
	if len(x) != len(y) {
		panic("correlation: x and y have different lengths")
	}
	if len(x) < 2 || isConstant(x) || isConstant(y) {
		return math.NaN()
	}
	return min(1, max(-1, stat.Correlation(x, y, nil)))
}

func isConstant(x []float64) bool {
	return !slices.ContainsFunc(x, func(v float64) bool { return v != x[0] })
}

// fisher returns r with the interval of atanh r, of variance factor / (n - 3); none for -1 and 1.
func fisher(r float64, n int, factor float64) Coefficient {
	c := Coefficient{Value: r, Low: math.NaN(), High: math.NaN(), N: n}
	if math.Abs(r) < 1 && n > 3 {
		z := distuv.UnitNormal.Quantile(0.975) * math.Sqrt(factor/float64(n-3))
		c.Low, c.High = math.Tanh(math.Atanh(r)-z), math.Tanh(math.Atanh(r)+z)
	}
	return c
}

// ranks returns the ranks of the values, starting at 1; equal values get their mean rank.
func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x[a], x[b]) })
	out := make([]float64, len(x))
	for i := 0; i < len(order); {
		j := i
		for j < len(order) && x[order[j]] == x[order[i]] {
			j++
		}
		for _, at := range order[i:j] {
			out[at] = float64(i+j+1) / 2
		}
		i = j
	}
	return out
}

// Logit returns log(p / (1 - p)) with p = (k + 1/2) / (n + 1), for k = n accuracy correct ones,
// finite for 0 and 1. If n is 0, p is the accuracy.
func Logit(accuracy float64, n int) float64 {
	p := accuracy
	if n > 0 {
		p = (accuracy*float64(n) + 0.5) / float64(n+1)
	}
	return math.Log(p / (1 - p))
}

// InverseLogit returns the inverse of Logit, limited to [0, 1].
func InverseLogit(l float64, n int) float64 {
	p := 1 / (1 + math.Exp(-l))
	if n > 0 {
		p = (p*float64(n+1) - 0.5) / float64(n)
	}
	return min(1, max(0, p))
}

// errTooFew is returned if there are fewer points than a line and its intervals need.
var errTooFew = errors.New("too few points")
