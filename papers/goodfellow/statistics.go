package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/noether-ml/noether/scores/correlation"
)

// rank returns Spearman's rank correlation.
func rank(x, y []float64) float64 { return correlation.Spearman(x, y).Value }

// resampled returns the 95 % bootstrap interval (percentiles of 2000 resamples of the pairs) of the
// rank correlation.
func resampled(x, y []float64) (low, high float64) {
	r := rand.New(rand.NewPCG(1, 1))
	var found []float64
	for range 2000 {
		a, b := make([]float64, len(x)), make([]float64, len(x))
		for i := range a {
			k := r.IntN(len(x))
			a[i], b[i] = x[k], y[k]
		}
		if c := rank(a, b); !math.IsNaN(c) {
			found = append(found, c)
		}
	}
	slices.Sort(found)
	return stat.Quantile(0.025, stat.Empirical, found, nil), stat.Quantile(0.975, stat.Empirical, found, nil)
}

// welch returns the two-sided p-value of a difference of means by Welch's t-test.
func welch(x, y []float64) float64 {
	mx, vx := stat.MeanVariance(x, nil)
	my, vy := stat.MeanVariance(y, nil)
	a, b := vx/float64(len(x)), vy/float64(len(y))
	nu := freedom(a, b, len(x), len(y))
	return 2 * distuv.StudentsT{Sigma: 1, Nu: nu}.CDF(-math.Abs(mx-my)/math.Sqrt(a+b))
}

// freedom returns the degrees of freedom of Welch's t, for samples of n and m values whose means
// have the variances a and b.
func freedom(a, b float64, n, m int) float64 {
	return (a + b) * (a + b) / (a*a/float64(n-1) + b*b/float64(m-1))
}
