package latent

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"github.com/noether-ml/noether/internal/linalg"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/resample"
)

// An operator is one of the ways to predict the feature maps of T(x) from those of x: identity (the
// same maps), place (values move with the input), channels (a matrix M mixes the channels at each
// position) or both.
type operator struct {
	name    string                                // Variant (version of r2) of its score
	moments func(f fold) *linalg.Scatter[float64] // moments of the pairs (x, y) of heldOut
	fitted  bool                                  // it mixes channels by a fitted matrix M
}

// score returns r2 of an operator on folds that it was not fitted on, with a jackknife over folds.
func (a *accumulator) score(o operator) measure.Score {
	n := a.samples()
	s := measure.Plain("r2", math.NaN(), n)
	s.Variant, s.Min, s.Max = o.name, math.Inf(-1), 1
	if a.leftOut > 0 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%d of %d samples are left out: no position lies inside the map before and after the transformation", a.leftOut, n+a.leftOut))
	}
	// With per: trial, all samples of a trial share one draw.
	if o.fitted && a.movesPositions && a.site.PerSample {
		s.Warnings = append(s.Warnings, "the transformation is drawn for each sample, but channels are mixed by one operator for all: set per: trial")
	}
	var folds []fold
	for _, f := range a.folds {
		if f.samples > 0 {
			folds = append(folds, f)
		}
	}
	if len(folds) < 2 {
		s.Warnings = append(s.Warnings, "fewer than two folds have samples")
		return s
	}
	var errors, totals []float64
	var sumError, sumTotal float64
	for k := range folds {
		rest := linalg.NewScatter[float64](2 * a.maps.Channels)
		for i, f := range folds {
			if i != k {
				rest.Merge(o.moments(f))
			}
		}
		e, total := a.heldOut(rest, o.moments(folds[k]), o.fitted)
		errors, totals = append(errors, e), append(totals, total)
		sumError, sumTotal = sumError+e, sumTotal+total
	}
	if !(sumTotal > 0) {
		s.Warnings = append(s.Warnings, "the maps of the transformed samples are constant")
		return s
	}
	s.Value = 1 - sumError/sumTotal
	for k, f := range folds {
		if rest := sumTotal - totals[k]; rest > 0 {
			s.Replicates = append(s.Replicates, measure.Replicate{Value: 1 - (sumError-errors[k])/rest, Left: f.samples})
		}
	}
	if low, high := resample.Jackknife(s.Value, n, s.Replicates); !math.IsNaN(low) {
		s.Low, s.High = low, min(high, 1)
	}
	return s
}

// heldOut returns the sums of squared errors over a test fold of predicting y, T(x), by an operator
// from x and by the mean of the training folds. A fitted operator predicts mean y + M (x - mean x).
func (a *accumulator) heldOut(train, test *linalg.Scatter[float64], fitted bool) (e, total float64) {
	c, n := a.maps.Channels, float64(test.N)
	squares := test.Diagonal() // for each variable of (x, y), the sum of its squared deviations
	xy := test.Between(0, c, 2*c)
	for i := range c {
		d := test.Mean[c+i] - train.Mean[c+i]
		total += squares[c+i] + n*d*d
	}
	if !fitted {
		for i := range c {
			d := test.Mean[c+i] - test.Mean[i]
			e += squares[c+i] - 2*xy[i*c+i] + squares[i] + n*d*d
		}
		return max(e, 0), total
	}
	m := a.fit(train)
	// The error is tr(Syy) - 2 tr(M Sxy) + tr(M Sxx Mᵀ) + n |d|^2, with the transpose of M in m.
	xx := blas64.General{Rows: c, Cols: c, Stride: c, Data: symmetric(test.Square(0, c), c)}
	product := blas64.General{Rows: c, Cols: c, Stride: c, Data: make([]float64, c*c)}
	blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, xx, m, 0, product)
	for i, v := range m.Data {
		e += v * (product.Data[i] - 2*xy[i])
	}
	for j := range c {
		d := test.Mean[c+j] - train.Mean[c+j]
		for i := range c {
			d -= m.Data[i*c+j] * (test.Mean[i] - train.Mean[i])
		}
		e += squares[c+j] + n*d*d
	}
	return max(e, 0), total
}

// fit returns the transpose of M = Syx (Sxx + lambda I)^-1, with lambda = ridge tr(Sxx) / C.
func (a *accumulator) fit(train *linalg.Scatter[float64]) blas64.General {
	c := a.maps.Channels
	xx := train.Square(0, c)
	m := blas64.General{Rows: c, Cols: c, Stride: c, Data: train.Between(0, c, 2*c)}
	var trace float64
	for i := range c {
		trace += xx[i*c+i]
	}
	// A ridge of at least 1e-10 bounds the condition number by about 1e10 C, whatever the rank is.
	lambda := max(a.ridge, 1e-10) * trace / float64(c)
	for i := range c {
		xx[i*c+i] += lambda
	}
	factor, ok := lapack64.Potrf(blas64.Symmetric{Uplo: blas.Upper, N: c, Stride: c, Data: xx})
	if trace == 0 || !ok {
		clear(m.Data) // constant maps predict nothing beyond the mean
		return m
	}
	lapack64.Potrs(factor, m)
	return m
}

func symmetric(a []float64, n int) []float64 {
	for i := range n {
		for j := range i {
			a[i*n+j] = a[j*n+i]
		}
	}
	return a
}
