package similarity

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/internal/linalg"
)

// A subsetPair v holds X and Y of n samples, rows, by variables. v.coordinates returns x, y and m:
// x.u diag(x.s) are X along its principal axes, Ux in x.u, x.p the number of variables; likewise y.
// m = Uxᵀ Uy is nil if X or Y has no axes: constant, or all 0.

// nuclear returns |.|*, the nuclear norm, of diag(a) m diag(b); |.| is Frobenius's.
func nuclear(a []float64, m *mat.Dense, b []float64) (float64, error) {
	s, err := linalg.SingularValues(scaledBoth(a, m, b))
	return floats.Sum(s), err
}

func scaledBoth(a []float64, m *mat.Dense, b []float64) *mat.Dense {
	out := mat.DenseCopyOf(m)
	out.Apply(func(i, j int, v float64) float64 { return a[i] * v * b[j] }, out)
	return out
}

// timesUnit returns c s. Samples are scaled so that squares do not overflow; c = subset.unit()
// undoes it.
func timesUnit(c float64, s []float64) []float64 {
	return floats.ScaleTo(make([]float64, len(s)), c, s)
}

func sumOfSquares(a []float64) float64 { return floats.Dot(a, a) }

// shapeMetric returns the angle between two representations after partial whitening and the best
// rotation (Williams et al. 2021; the angular distance of netrep, their Python package). With the
// singular values s of a representation replaced by s (alpha + (1 - alpha) / s), it is
//
//	arccos(|Xᵀ Y|* / (|X| |Y|)).
//
// alpha = 1 is the angle of orthogonal Procrustes, alpha = 0 compares linear spans. Values below
// 3e-4 count as 3e-4 in the denominator, as in netrep.
func shapeMetric(v *subsetPair) (float64, error) {
	x, y, m, err := v.coordinates(centred)
	if err != nil {
		return 0, err
	}
	if m == nil {
		return math.Acos(ratio(0, sumOfSquares(x.s), sumOfSquares(y.s))), nil
	}
	alpha := v.settings.Alpha
	partly := func(s []float64, unit float64) []float64 {
		out := make([]float64, len(s))
		for i, t := range s {
			out[i] = t * (alpha + (1-alpha)/math.Sqrt(max(t*t*unit*unit, 1e-7)))
		}
		return out
	}
	a, b := partly(x.s, v.x.unit()), partly(y.s, v.y.unit())
	sum, err := nuclear(a, m, b)
	return math.Acos(min(ratio(sum, sumOfSquares(a), sumOfSquares(b)), 1)), err
}

// procrustesDistance returns min |X Q - Y| over orthogonal Q (Williams et al. 2021): sqrt(|X|^2 +
// |Y|^2 - 2 |Xᵀ Y|*).
func procrustesDistance(v *subsetPair) (float64, error) {
	x, y, m, err := v.coordinates(centred)
	if err != nil {
		return 0, err
	}
	a, b := timesUnit(v.x.unit(), x.s), timesUnit(v.y.unit(), y.s)
	total, sum := sumOfSquares(a)+sumOfSquares(b), 0.
	if m != nil {
		if sum, err = nuclear(a, m, b); err != nil {
			return 0, err
		}
	}
	if rest := total - 2*sum; rest > 1e-14*total {
		return math.Sqrt(rest), nil
	}
	return 0, nil // the rest is rounding
}

// alignedCosine returns the mean cosine of samples in y and in x after Procrustes rotation
// (Hamilton et al. 2016), without samples at an origin.
func alignedCosine(v *subsetPair) (float64, error) {
	x, y, m, err := v.coordinates(v.centring())
	if err != nil {
		return 0, err
	}
	if m == nil {
		return v.undefined("all samples of a representation are at the origin: cosines are undefined")
	}
	a, _, b, err := linalg.SVD(scaledBoth(x.s, m, y.s))
	if err != nil {
		return 0, err
	}
	var p, q mat.Dense // coordinates of the samples of x and y along the axes that the rotation matches
	p.Mul(scaledBoth(ones(v.n()), x.u, x.s), a)
	q.Mul(scaledBoth(ones(v.n()), y.u, y.s), b)
	var sum, used float64
	for i := range v.n() {
		lx, ly := weightedNorm(x.u.RawRowView(i), x.s), weightedNorm(y.u.RawRowView(i), y.s)
		if lx > 1e-12*x.s[0] && ly > 1e-12*y.s[0] {
			sum += floats.Dot(p.RawRowView(i), q.RawRowView(i)) / lx / ly
			used++
		}
	}
	if used == 0 {
		return v.undefined("no sample is away from the origin of both representations: cosines are undefined")
	}
	return sum / used, nil
}

func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

// weightedNorm returns |diag(s) u|.
func weightedNorm(u, s []float64) float64 {
	var sum float64
	for i, w := range u {
		sum += w * w * s[i] * s[i]
	}
	return math.Sqrt(sum)
}

// gulp returns the GULP distance (Boix-Adsera et al. 2022): how far the predictions of ridge
// regressions on the two representations can differ, for targets of unit variance. With eigenvalues
// a and b of the covariances of both, scaled to total variance 1, and l = Settings.Lambda,
//
//	d^2 = sum (a / (a + l))^2 + sum (b / (b + l))^2 - 2 sum_ij a_i b_j m_ij^2 / ((a_i + l)(b_j + l)).
func gulp(v *subsetPair) (float64, error) {
	x, y, m, err := v.coordinates(centred)
	if err != nil {
		return 0, err
	}
	shrink := func(s []float64) []float64 {
		total, out := sumOfSquares(s), make([]float64, len(s))
		for i, t := range s {
			a := t * t / total
			out[i] = a / (a + v.settings.Lambda)
		}
		return out
	}
	a, b := shrink(x.s), shrink(y.s)
	d := sumOfSquares(a) + sumOfSquares(b)
	total := d
	if m != nil {
		for i, w := range a {
			for j, z := range m.RawRowView(i) {
				d -= 2 * w * b[j] * z * z
			}
		}
	}
	if d <= 1e-13*total { // rounding
		return 0, nil
	}
	return math.Sqrt(d), nil
}

// eigenspaceOverlap returns |Uxᵀ Uy|^2 / max(p, q) (May et al. 2019).
func eigenspaceOverlap(v *subsetPair) (float64, error) {
	x, y, m, err := v.coordinates(v.centring())
	if err != nil || m == nil {
		return 0, err
	}
	data := m.RawMatrix().Data
	return floats.Dot(data, data) / float64(max(x.p, y.p)), nil
}

// effectiveRank returns exp of the entropy of s / sum s (RankMe, Garrido et al. 2023); 1 if empty.
func effectiveRank(s []float64) float64 {
	var entropy float64
	total := floats.Sum(s)
	for _, v := range s {
		entropy -= v / total * math.Log(v/total)
	}
	return math.Exp(entropy)
}

// ridgePredictivity returns held-out R^2 of x by ridge regression on y. The penalty is
// Settings.Ridge times the mean variance of y times n.
func ridgePredictivity(v *subsetPair) (float64, error) {
	return v.predictivity(func(x, y *mat.Dense) (*mat.Dense, error) { return ridge(x, y, v.settings.Ridge/float64(v.y.of.p)) })
}

// predictivity returns 1 - sum |x - prediction|^2 / sum |x - mean|^2 over Settings.Folds folds,
// from the other folds. v.place determines a sample's fold. fit returns coefficients of centred
// values, or nil for nothing to predict from. Values are along principal axes: rotations change
// nothing.
func (v *subsetPair) predictivity(fit func(x, y *mat.Dense) (*mat.Dense, error)) (float64, error) {
	x, y, _, err := v.coordinates(centred)
	if err != nil {
		return 0, err
	}
	if len(x.s) == 0 || len(y.s) == 0 {
		return 0, nil
	}
	a, b := scaledBoth(ones(v.n()), x.u, x.s), scaledBoth(ones(v.n()), y.u, y.s)
	var residual, total float64
	for fold := range v.settings.Folds {
		var train, test []int
		for i, place := range v.place {
			if place%v.settings.Folds == fold {
				test = append(test, i)
			} else {
				train = append(train, i)
			}
		}
		if len(test) == 0 {
			continue
		}
		if len(train) < 2 {
			return v.undefined("%d samples are too few for %d folds", v.n(), v.settings.Folds)
		}
		fitX, meanX := centredRows(a, train, nil) // nil: about their own mean
		fitY, meanY := centredRows(b, train, nil)
		testX, _ := centredRows(a, test, meanX)
		testY, _ := centredRows(b, test, meanY)
		coefficients, err := fit(fitX, fitY)
		if err != nil {
			return 0, err
		}
		total += sumOfSquares(testX.RawMatrix().Data)
		if coefficients != nil {
			var predicted mat.Dense
			predicted.Mul(testY, coefficients)
			testX.Sub(testX, &predicted)
		}
		residual += sumOfSquares(testX.RawMatrix().Data)
	}
	return 1 - residual/total, nil
}

// ridge returns the coefficients (YᵀY + penalty |Y|^2 I)^-1 Yᵀ X, or nil if Y is constant.
func ridge(x, y *mat.Dense, penalty float64) (*mat.Dense, error) {
	_, q := y.Dims()
	lambda := penalty * sumOfSquares(y.RawMatrix().Data)
	if lambda == 0 && sumOfSquares(y.RawMatrix().Data) == 0 {
		return nil, nil
	}
	s := mat.NewSymDense(q, nil)
	s.SymOuterK(1, y.T())
	for i := range q {
		s.SetSym(i, i, s.At(i, i)+lambda)
	}
	var cross, out mat.Dense
	cross.Mul(y.T(), x)
	var c mat.Cholesky
	if !c.Factorize(s) {
		return nil, errSingular
	}
	err := c.SolveTo(&out, &cross)
	if _, ill := err.(mat.Condition); ill {
		err = nil // errors along directions of small variance hardly change the prediction
	}
	return &out, err
}

// centredRows returns rows minus mean (nil: their own), and mean.
func centredRows(m *mat.Dense, at []int, mean []float64) (*mat.Dense, []float64) {
	_, p := m.Dims()
	out := mat.NewDense(len(at), p, nil)
	own := make([]float64, p)
	for i, row := range at {
		out.SetRow(i, m.RawRowView(row))
		floats.AddScaled(own, 1/float64(len(at)), m.RawRowView(row))
	}
	if mean == nil {
		mean = own
	}
	for i := range at {
		floats.Sub(out.RawRowView(i), mean)
	}
	return out, mean
}
