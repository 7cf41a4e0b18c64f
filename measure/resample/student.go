package resample

import (
	"math"

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
	return mean, distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.975) * stat.StdDev(values, nil) / math.Sqrt(n)
}
