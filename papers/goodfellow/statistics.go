package main

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/noether-ml/noether/scores/correlation"
)

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
	nu := (a + b) * (a + b) / (a*a/float64(len(x)-1) + b*b/float64(len(y)-1))
	return 2 * distuv.StudentsT{Sigma: 1, Nu: nu}.CDF(-math.Abs(mx-my)/math.Sqrt(a+b))
}
