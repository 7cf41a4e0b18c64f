package similarity

import (
	"math"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/internal/linalg"
)

// plsPredictivity is ridgePredictivity by partial least squares, on the same folds (Yamins et al.
// 2014; Schrimpf et al. 2018).
func plsPredictivity(v *subsetPair) (float64, error) {
	return v.predictivity(func(x, y *mat.Dense) (*mat.Dense, error) {
		return partialLeastSquares(x, y, v.settings.Components)
	})
}

// partialLeastSquares returns the coefficients (q x p) of the regression of centred targets x (n x
// p) on centred predictors y (n x q) by at most the given number of components, or nil if there is
// nothing to predict from. A component is t = y w, where w is the leading left singular vector of
// yᵀ x, and y is replaced by its residuals from t before the next one (NIPALS with regression mode,
// Wegelin 2000):
//
//	l = yᵀ t / |t|^2,  c = xᵀ t / |t|^2,  y <- y - t lᵀ.
//
// With the w, l and c of all components as the columns of W, L and C, the coefficients are
// W (Lᵀ W)^-1 Cᵀ.
func partialLeastSquares(x, y *mat.Dense, components int) (*mat.Dense, error) {
	n, p := x.Dims()
	_, q := y.Dims()
	y = mat.DenseCopyOf(y)
	var cross mat.Dense // yᵀ x, with y as it is now
	cross.Mul(y.T(), x)
	most := min(components, n-1, q)
	// Column k of w, l and c is the weight, load and target of component k.
	w, l, c := mat.NewDense(q, most, nil), mat.NewDense(q, most, nil), mat.NewDense(p, most, nil)
	size := math.Sqrt(sumOfSquares(cross.RawMatrix().Data))
	found := 0
	for ; found < most; found++ {
		weight, value, err := leadingLeft(&cross)
		if err != nil {
			return nil, err
		}
		if !(value > 1e-12*size) { // the rest is rounding
			break
		}
		var t, load, target mat.VecDense
		t.MulVec(y, weight)
		square := mat.Dot(&t, &t)
		load.MulVec(y.T(), &t)
		load.ScaleVec(1/square, &load)
		target.MulVec(x.T(), &t)
		target.ScaleVec(1/square, &target)
		blas64.Ger(-1, t.RawVector(), load.RawVector(), y.RawMatrix())
		blas64.Ger(-square, load.RawVector(), target.RawVector(), cross.RawMatrix())
		w.SetCol(found, weight.RawVector().Data)
		l.SetCol(found, load.RawVector().Data)
		c.SetCol(found, target.RawVector().Data)
	}
	if found == 0 {
		return nil, nil
	}
	w, l, c = w.Slice(0, q, 0, found).(*mat.Dense), l.Slice(0, q, 0, found).(*mat.Dense), c.Slice(0, p, 0, found).(*mat.Dense)
	var lw, right, out mat.Dense
	lw.Mul(l.T(), w)
	if err := right.Solve(&lw, c.T()); err != nil {
		if _, ill := err.(mat.Condition); !ill {
			return nil, err
		}
	}
	out.Mul(w, &right)
	return &out, nil
}

// leadingLeft returns the leading left singular vector and value, by eigenvectors of m mᵀ or mᵀ m,
// the smaller, in a third of the time.
func leadingLeft(m *mat.Dense) (*mat.VecDense, float64, error) {
	rows, columns := m.Dims()
	wide := rows <= columns
	var product mat.Dense
	if wide {
		product.Mul(m, m.T())
	} else {
		product.Mul(m.T(), m)
	}
	values, vectors, err := linalg.Eigen(product.RawMatrix().Data, min(rows, columns))
	if err != nil {
		return nil, 0, err
	}
	out, value := vectors.ColView(0).(*mat.VecDense), sqrt(values[0])
	if !wide && value > 0 {
		left := mat.NewVecDense(rows, nil)
		left.MulVec(m, out)
		left.ScaleVec(1/mat.Norm(left, 2), left)
		out = left
	}
	return mat.VecDenseCopyOf(out), value, nil
}
