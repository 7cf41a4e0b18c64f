package probe

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// standardised returns values with the mean 0 and the variance 1 of the first train of them, as
// numpy computes them; ok is false if those are constant.
func standardised(values []float64, train int) (out []float64, ok bool) {
	mean, sd := stat.PopMeanStdDev(values[:train], nil)
	out = make([]float64, len(values))
	if sd <= 1e-12*math.Abs(mean) {
		return out, false
	}
	for i, v := range values {
		out[i] = (v - mean) / sd
	}
	return out, true
}

// dci returns disentanglement, completeness and error (Eastwood and Williams 2018) of lasso
// regressions of factors on components z, all standardised by the first train samples. Importances
// are absolute weights. A category is one-hot vectors, whose weights are summed. The error is that
// of the other samples, as a fraction of their standard deviation, the mean over factors.
func (s *CodesSettings) dci(z [][]float64, factors []codeFactor, train int, fit *codeFit) (disentanglement, completeness, fault float64) {
	d, n := len(z), len(z[0])
	x := make([]float64, d*n) // d x n
	for k, values := range z {
		scaled, _ := standardised(values, train)
		copy(x[k*n:], scaled)
	}
	gram := blas64.Symmetric{N: d, Stride: d, Data: make([]float64, d*d), Uplo: blas.Upper}
	blas64.Syrk(blas.NoTrans, 1/float64(train), blas64.General{Rows: d, Cols: train, Stride: n, Data: x}, 0, gram)
	for i := range d {
		for j := range i {
			gram.Data[i*d+j] = gram.Data[j*d+i]
		}
	}
	importance := make([][]float64, len(factors)) // of each factor, of each component
	for j, f := range factors {
		importance[j] = make([]float64, d)
		var squares, spread float64 // of the error, and of the factor
		columns := f.columns()
		for c, column := range columns {
			y, ok := standardised(column, train)
			if !ok {
				continue
			}
			xy := make([]float64, d)
			for k := range d {
				xy[k] = floats.Dot(x[k*n:k*n+train], y[:train]) / float64(train)
			}
			w := lasso(gram.Data, xy, s.Lasso, fit.start(&fit.lasso, fmt.Sprint(f.name, c), d))
			for k, v := range w {
				importance[j][k] += math.Abs(v)
			}
			predicted := make([]float64, n-train)
			for k, v := range w {
				floats.AddScaled(predicted, v, x[k*n+train:(k+1)*n])
			}
			for i, p := range predicted {
				squares += (p - y[train+i]) * (p - y[train+i])
			}
			spread += stat.PopVariance(y[train:], nil) * float64(n-train)
		}
		fault += math.Sqrt(squares/spread) / float64(len(factors))
	}
	var total float64
	code := make([]float64, d) // importance of each component for all factors
	for _, r := range importance {
		floats.Add(code, r)
		total += floats.Sum(r)
		completeness += (1 - entropyRatio(r)) / float64(len(factors))
	}
	for k := range d {
		column := make([]float64, len(factors))
		for j, r := range importance {
			column[j] = r[k]
		}
		if code[k] > 0 {
			disentanglement += code[k] / total * (1 - entropyRatio(column))
		}
	}
	if total == 0 {
		return math.NaN(), math.NaN(), fault
	}
	return disentanglement, completeness, fault
}

// entropyRatio returns the entropy of weights over that of equal ones; 1 for zeros, which prefer
// none.
func entropyRatio(weights []float64) float64 {
	if floats.Sum(weights) == 0 {
		return 1
	}
	return entropyOf(weights) / math.Log(float64(len(weights)))
}

// columns returns the values of a number, or the one-hot columns of a category.
func (f codeFactor) columns() [][]float64 {
	if !f.categorical {
		return [][]float64{f.value}
	}
	var out [][]float64
	values := slices.Clone(f.value)
	slices.Sort(values)
	for _, v := range slices.Compact(values) {
		column := make([]float64, len(f.value))
		for i, w := range f.value {
			if w == v {
				column[i] = 1
			}
		}
		out = append(out, column)
	}
	return out
}

// start returns the weights of an earlier fit to more samples, which the fit overwrites only the
// first time; else zeros.
func (f *codeFit) start(fits *map[string][]float64, name string, n int) []float64 {
	if *fits == nil {
		*fits = map[string][]float64{}
	}
	if w, ok := (*fits)[name]; ok && len(w) == n {
		return slices.Clone(w)
	}
	w := make([]float64, n)
	(*fits)[name] = w
	return w
}

// lasso minimises |y - X w|² / 2n + penalty |w|₁ by coordinate descent from w, which it returns.
// gram is XᵀX / n and xy is Xᵀy / n.
func lasso(gram, xy []float64, penalty float64, w []float64) []float64 {
	d := len(xy)
	rest := slices.Clone(xy) // Xᵀ(y - X w) / n
	for k, v := range w {
		if v != 0 {
			floats.AddScaled(rest, -v, gram[k*d:(k+1)*d])
		}
	}
	const sweeps = 5000
	for range sweeps {
		var largest float64
		for k := range d {
			scale := gram[k*d+k]
			if scale <= 0 {
				continue
			}
			v := rest[k] + scale*w[k]
			next := math.Copysign(max(math.Abs(v)-penalty, 0), v) / scale
			if change := next - w[k]; change != 0 {
				floats.AddScaled(rest, -change, gram[k*d:(k+1)*d])
				w[k] = next
				largest = max(largest, math.Abs(change))
			}
		}
		if largest < 1e-10 {
			break
		}
	}
	return w
}
