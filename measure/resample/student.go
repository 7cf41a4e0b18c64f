package resample

import (
	"math"
	"sync"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Student returns the mean of independent values, such as scores of networks that were trained
// separately, and half the width of its 95 % interval: t s / sqrt(n), with Student's t of n - 1
// degrees of freedom and the sample standard deviation s. For fewer than two values half is NaN.
func Student(values []float64) (mean, half float64) {
	mean = stat.Mean(values, nil)
	n := float64(len(values))
	if n < 2 {
		return mean, math.NaN()
	}
	return mean, studentQuantile(n-1) * stat.StdDev(values, nil) / math.Sqrt(n)
}

// Welch returns the mean of y minus that of x, and half the width of its 95 % interval, for two
// independent samples of independent values: Welch's t, whose degrees of freedom are those of
// Satterthwaite. With fewer than two values in a sample half is NaN.
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

// studentQuantiles has the results of studentQuantile: all intervals of a study ask for the same
// few, and each takes 10 µs.
var studentQuantiles sync.Map

// studentQuantile returns the 97.5 % quantile of Student's t of a whole number of degrees of
// freedom.
func studentQuantile(freedom float64) float64 {
	if known, ok := studentQuantiles.Load(freedom); ok {
		return known.(float64)
	}
	q := distuv.StudentsT{Sigma: 1, Nu: freedom}.Quantile(0.975)
	studentQuantiles.Store(freedom, q)
	return q
}
