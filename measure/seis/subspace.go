package seis

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/measure/resample"
)

// noiseFloor is the fraction of the largest eigenvalue below which one is a float32 rounding error.
// It matters only above 99.9 % of the variance, or with hardly any.
const noiseFloor = 1e-7

// A subspace is spanned by leading eigenvectors of a scatter of d positions. A few more, its
// margin, serve to compute the effect of a higher rank.
type subspace struct {
	resample.Cutoff            // the rank K, and the eigenvalues
	basis           *mat.Dense // d x (K + margin), orthonormal columns; nil where K is 0
}

// margin is at least the step by which resample.NearbyRanks changes a rank k.
func margin(k int) int { return 1 + k/50 }

// leading returns the subspace of the fewest leading eigenvectors that hold the fraction of the
// sum. The d x d scatter, its upper triangle, is overwritten. Rounding errors are left out:
// constants have dimension 0.
func leading(scatter []float64, d int, fraction float64) (subspace, error) {
	if len(scatter) != d*d {
		panic(fmt.Sprintf("seis: a scatter of %d values for %d variables", len(scatter), d))
	}
	var k, kept int
	var total float64
	values, basis, err := linalg.LeadingEigen(scatter, d, func(values []float64) int {
		significant := countAbove(values, noiseFloor*values[0])
		total = resample.SumPositive(values)
		k = resample.CountLeading(values[:significant], fraction*total)
		if k > 0 {
			kept = min(k+margin(k), significant)
		}
		return kept
	})
	if err != nil {
		return subspace{}, err
	}
	out := subspace{Cutoff: resample.Cutoff{K: k, Fraction: fraction, Total: total}}
	if k > 0 {
		out.basis, out.Values = basis, values[:kept:kept]
	}
	return out, nil
}

func (s subspace) withoutMargin() subspace {
	if s.K > 0 {
		s.basis, s.Values = mat.DenseCopyOf(s.basis.Slice(0, s.basis.RawMatrix().Rows, 0, s.K)), s.Values[:s.K]
	}
	return s
}

// countAbove returns the number of values that exceed both floor and zero. values are descending.
func countAbove(values []float64, floor float64) int {
	n := 0
	for n < len(values) && values[n] > max(floor, 0) {
		n++
	}
	return n
}

// subspaces finds the leading subspaces, x clean and y transformed. Margins are kept for intervals.
func (a *accumulator) subspaces() (x *cleanScores, y subspace, err error) {
	d := a.maps.positions()
	for i, v := range a.total.Diagonal() {
		if math.IsInf(v, 0) || math.IsNaN(v) {
			return nil, y, fmt.Errorf("seis: activations at position %d are so large that their squares overflow float32", i%d)
		}
	}
	margin := a.groups.len() > 0
	if x, err = a.clean.scores(a.total, a.measure.settings.Variance, margin); err != nil {
		return nil, y, fmt.Errorf("seis, clean view: %w", err)
	}
	if y, err = leading(a.total.Square(d, 2*d), d, a.measure.settings.Variance); err != nil {
		return nil, y, fmt.Errorf("seis, transformed view: %w", err)
	}
	if !margin {
		y = y.withoutMargin()
	}
	return x, y, nil
}
