package resample

import (
	"math"
	"sync"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Student returns the mean of independent values and half its 95 % interval: t s / sqrt(n), with n
// - 1 degrees of freedom. half is NaN below two values.
func Student(values []float64) (mean, half float64) {
	mean = stat.Mean(values, nil)
	n := float64(len(values))
	if n < 2 {
		return mean, math.NaN()
	}
	return mean, studentQuantile(n-1) * stat.StdDev(values, nil) / math.Sqrt(n)
}

// Welch returns the mean of y minus that of x, and half its 95 % interval, by Welch's t with
// Satterthwaite's degrees of freedom. half is NaN below two values in a sample.
func Welch(x, y []float64) (difference, half float64) {
	difference = stat.Mean(y, nil) - stat.Mean(x, nil)
	n, m := float64(len(x)), float64(len(y))
	if n < 2 || m < 2 {
		return difference, math.NaN()
	}
	a, b := stat.Variance(x, nil)/n, stat.Variance(y, nil)/m
	if a+b == 0 {
		return difference, 0
	}
	freedom := (a + b) * (a + b) / (a*a/(n-1) + b*b/(m-1))
	return difference, distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(0.975) * math.Sqrt(a+b)
}

// All intervals of a study ask for the same few, and each takes 10 µs.
var studentQuantiles sync.Map

func studentQuantile(freedom float64) float64 {
	if known, ok := studentQuantiles.Load(freedom); ok {
		return known.(float64)
	}
	q := distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(0.975)
	studentQuantiles.Store(freedom, q)
	return q
}

// Combine returns the half-width and the degrees of freedom of the interval of a sum of independent
// parts with the given half-widths: half-widths add in quadrature, and degrees by Satterthwaite's
// formula, rounded down. A part of half-width 0 counts for nothing.
func Combine(half, freedom []float64) (of, degrees float64) {
	var sum, fourth float64 // of the variances, and of their squares over their degrees of freedom
	for i, h := range half {
		of = math.Hypot(of, h)
		if h != 0 {
			variance := h / studentQuantile(freedom[i])
			variance *= variance
			sum, fourth = sum+variance, fourth+variance*variance/freedom[i]
		}
	}
	if sum == 0 {
		return of, 1
	}
	return of, max(1, math.Floor(sum*sum/fourth+1e-9))
}

// PValue returns the two-sided p-value of a value at a distance from the centre of a 95 % interval
// of that half-width, by Student's t of freedom degrees: below 0.05 exactly if the interval
// excludes the value. It is NaN if one of both is.
func PValue(distance, half, freedom float64) float64 {
	switch {
	case math.IsNaN(half) || math.IsNaN(distance):
		return math.NaN()
	case distance == 0:
		return 1
	case half == 0:
		return 0
	}
	t := math.Abs(distance) / half * studentQuantile(freedom)
	return min(1, 2*distuv.StudentsT{Sigma: 1, Nu: freedom}.Survival(t))
}

// Refer returns the half-width of an interval by Student's t of freedom degrees, of one by that of
// before degrees.
func Refer(half, before, freedom float64) float64 {
	return half / studentQuantile(before) * studentQuantile(freedom)
}

// Widen returns the half-width of the interval that excludes 5 % / tests, of the one that excludes
// 5 %, by Student's t of freedom degrees. tests is at least 1.
func Widen(half, tests, freedom float64) float64 {
	if tests == 1 {
		return half
	}
	return half * distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(1-0.025/tests) / studentQuantile(freedom)
}
