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
