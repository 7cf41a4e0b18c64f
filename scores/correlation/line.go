package correlation

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// A Line is y = Intercept + Slope x.
type Line struct {
	Intercept, Slope float64
	Scale            float64 // robust standard deviation of the residuals
}

// At returns the value of the line at x.
func (l Line) At(x float64) float64 { return l.Intercept + l.Slope*x }

// Parameters of Huber's estimator.
const (
	huberTuning = 1.345              // the customary tuning constant: 95 % efficiency if residuals are normal
	madScale    = 0.6744897501960817 // upper quartile of the standard normal distribution
	iterations  = 200                // largest number of reweighting steps
)

// huber fits Huber's M-estimator with constant 1.345 by iteratively reweighted least squares. The
// scale is the median absolute residual over 0.6745 in each of up to 200 iterations, as in
// statsmodels' RLM. Fewer than two distinct x, and values that are not finite, are errors.
func huber(x, y []float64) (Line, error) {
	if len(x) != len(y) {
		return Line{}, fmt.Errorf("%d values of x and %d of y", len(x), len(y))
	}
	if len(x) < 2 {
		return Line{}, fmt.Errorf("a line through %d points: %w", len(x), errTooFew)
	}
	for i := range x {
		if !isFinite(x[i]) || !isFinite(y[i]) {
			return Line{}, fmt.Errorf("point %d is not finite: %g, %g", i, x[i], y[i])
		}
	}
	if isConstant(x) {
		return Line{}, fmt.Errorf("all %d points have the same x, %g: no line fits", len(x), x[0])
	}
	line, weights := leastSquares(x, y, nil), make([]float64, len(x))
	for range iterations {
		line.Scale = residualScale(line, x, y)
		// At least half of the points lie on the line, up to rounding.
		if line.Scale < 1e-12*(slices.Max(y)-slices.Min(y)) || line.Scale == 0 {
			line.Scale = 0
			break
		}
		for i := range x {
			weights[i] = min(1, huberTuning*line.Scale/math.Abs(y[i]-line.At(x[i])))
		}
		next := leastSquares(x, y, weights)
		next.Scale = line.Scale
		change := math.Abs(next.Intercept-line.Intercept) + math.Abs(next.Slope-line.Slope)
		size := math.Abs(line.Intercept) + math.Abs(line.Slope)
		line = next
		if change <= 1e-12*size {
			break
		}
	}
	return line, nil
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func leastSquares(x, y, weights []float64) Line {
	a, b := stat.LinearRegression(x, y, weights, false)
	return Line{Intercept: a, Slope: b}
}

func residualScale(l Line, x, y []float64) float64 {
	r := make([]float64, len(x))
	for i := range x {
		r[i] = math.Abs(y[i] - l.At(x[i]))
	}
	return median(r) / madScale
}

// median sorts its argument.
func median(v []float64) float64 {
	slices.Sort(v)
	m := len(v) / 2
	if len(v)%2 == 1 {
		return v[m]
	}
	return (v[m-1] + v[m]) / 2
}
