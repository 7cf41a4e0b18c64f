package probe

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/optimize"
	"gonum.org/v1/gonum/stat"

	"github.com/noether-ml/noether/internal/linalg"
)

// infoModularity returns InfoM and InfoC (Hsu et al. 2023). Mutual informations of components and
// factors, divided by the entropies of factors, are compared: InfoM is the mean over components of
// the largest fraction for a factor, InfoC the mean over factors of the largest fraction in a
// component, both rescaled so that equal fractions give 0. Components with less than a twentieth of
// the largest range are left out.
func infoModularity(z [][]float64, factors []classes, neighbours int) (modularity, compactness float64) {
	var widest float64
	width := func(v []float64) float64 { return slices.Max(v) - slices.Min(v) }
	for _, v := range z {
		widest = max(widest, width(v))
	}
	var known [][]float64 // of each component that is kept, of each factor
	noise := rand.New(rand.NewPCG(0, 0))
	for _, v := range z {
		if width(v) <= widest/20 {
			continue
		}
		// Ties are broken by noise, as in scikit-learn.
		_, sd := stat.PopMeanStdDev(v, nil)
		x := make([]float64, len(v))
		var size float64
		for i, a := range v {
			x[i] = a / sd
			size += math.Abs(x[i]) / float64(len(v))
		}
		for i := range x {
			x[i] += 1e-10 * max(1, size) * noise.NormFloat64()
		}
		row := make([]float64, len(factors))
		for j, f := range factors {
			row[j] = nearestInformation(x, f, neighbours) / f.entropy()
		}
		known = append(known, row)
	}
	rescale := func(mean float64, n int) float64 { return (mean - 1/float64(n)) / (1 - 1/float64(n)) }
	informed := 0.0
	for _, row := range known {
		if sum := floats.Sum(row); sum > 0 {
			modularity += floats.Max(row) / sum
			informed++
		}
	}
	modularity = rescale(modularity/informed, len(factors))
	for j := range factors {
		var largest, sum float64
		for _, row := range known {
			largest, sum = max(largest, row[j]), sum+row[j]
		}
		if sum == 0 { // nothing is known of the factor, by any component
			largest, sum = 1, float64(len(known))
		}
		compactness += largest / sum / float64(len(factors))
	}
	return modularity, rescale(compactness, len(known))
}

// nearestInformation estimates the mutual information of a continuous variable and classes by the
// distances to the k-th neighbour in the class (Ross 2014).
func nearestInformation(x []float64, c classes, k int) float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		switch {
		case x[a] < x[b]:
			return -1
		case x[a] > x[b]:
			return 1
		}
		return 0
	})
	within := make([][]int, c.count) // the samples of each class, in order
	for _, i := range order {
		within[c.of[i]] = append(within[c.of[i]], i)
	}
	var all []float64 // in order, without classes of one sample
	for _, i := range order {
		if len(within[c.of[i]]) > 1 {
			all = append(all, x[i])
		}
	}
	n := float64(len(all))
	if n == 0 {
		return 0
	}
	out := mathext.Digamma(n)
	for _, some := range within {
		m := len(some)
		if m < 2 {
			continue
		}
		near := min(k, m-1)
		out += float64(m) / n * (mathext.Digamma(float64(near)) - mathext.Digamma(float64(m)))
		for p, i := range some {
			// The k-th distance: of the windows of near + 1 samples that contain p, the narrowest side.
			radius := math.Inf(1)
			for from := max(0, p-near); from <= p && from+near < m; from++ {
				radius = min(radius, max(x[i]-x[some[from]], x[some[from+near]]-x[i]))
			}
			radius = math.Nextafter(radius, 0)
			// Differences are compared: x[i] ± radius would be rounded.
			low := sort.Search(len(all), func(j int) bool { return x[i]-all[j] <= radius })
			high := sort.Search(len(all), func(j int) bool { return all[j]-x[i] > radius })
			out -= mathext.Digamma(float64(high-low)) / n
		}
	}
	return max(0, out)
}

// infoExplicitness returns InfoE: the mean over factors of the predictive information of the
// vector, as a fraction of the entropy. A category is predicted by logistic regression without a
// penalty, with balanced weights; of a number it is R² of linear regression.
func infoExplicitness(ctx context.Context, z [][]float64, factors []codeFactor, labels []classes, fit *codeFit) (float64, error) {
	d, n := len(z), len(z[0])
	x := make([]float64, n*d) // n x d
	for k, values := range z {
		scaled, _ := standardised(values, n)
		for i, v := range scaled {
			x[i*d+k] = v
		}
	}
	var out float64
	for j, f := range factors {
		var explained float64
		if f.categorical {
			with, err := logisticLoss(ctx, x, d, labels[j], fit.start(&fit.logistic, f.name, labels[j].count*(d+1)))
			if err != nil {
				return 0, err
			}
			// Without the vector, balanced weights predict all classes equally often.
			without := math.Log(float64(labels[j].count))
			explained = (without - with) / without
		} else {
			r2, err := linearR2(x, d, f.value)
			if err != nil {
				return 0, err
			}
			explained = r2
		}
		out += explained / float64(len(factors))
	}
	return out, nil
}

// linearR2 returns R² of y, n values, from linear regression on the columns of x, n x d, which have
// the mean 0.
func linearR2(x []float64, d int, y []float64) (float64, error) {
	n := len(y)
	mean := stat.Mean(y, nil)
	gram, xy := make([]float64, d*d), make([]float64, d)
	var total float64
	for i, v := range y {
		floats.AddScaled(xy, v-mean, x[i*d:(i+1)*d])
		total += (v - mean) * (v - mean)
	}
	blas64.Syrk(blas.Trans, 1, blas64.General{Rows: n, Cols: d, Stride: d, Data: x}, 0, blas64.Symmetric{N: d, Stride: d, Data: gram, Uplo: blas.Upper})
	values, q, err := linalg.Eigen(gram, d)
	if err != nil {
		return 0, err
	}
	var explained float64
	for k, v := range values {
		if v > 1e-12*values[0] {
			var along float64
			for i := range d {
				along += q.At(i, k) * xy[i]
			}
			explained += along * along / v
		}
	}
	return min(1, explained/total), nil
}

// logisticLoss returns the mean cross-entropy of multinomial logistic regression fitted with
// weights that balance the classes, from the weights w, of each class d and an intercept, which it
// updates.
func logisticLoss(ctx context.Context, x []float64, d int, label classes, w []float64) (float64, error) {
	n, k := len(label.of), label.count
	count := make([]float64, k)
	for _, c := range label.of {
		count[c]++
	}
	logits := make([]float64, n*k)
	probabilities := func(w []float64) {
		rows := blas64.General{Rows: n, Cols: d, Stride: d, Data: x}
		weights := blas64.General{Rows: k, Cols: d, Stride: d + 1, Data: w}
		blas64.Gemm(blas.NoTrans, blas.Trans, 1, rows, weights, 0, blas64.General{Rows: n, Cols: k, Stride: k, Data: logits})
		for i := range n {
			row := logits[i*k : (i+1)*k]
			for c := range row {
				row[c] += w[c*(d+1)+d]
			}
			total := floats.LogSumExp(row)
			for c := range row {
				row[c] -= total
			}
		}
	}
	weight := func(i int) float64 { return 1 / (float64(k) * count[label.of[i]]) }
	problem := optimize.Problem{
		Func: func(w []float64) float64 {
			probabilities(w)
			var sum float64
			for i, c := range label.of {
				sum -= weight(i) * logits[i*k+c]
			}
			return sum
		},
		Grad: func(grad, w []float64) {
			probabilities(w)
			clear(grad)
			for i, c := range label.of {
				row := logits[i*k : (i+1)*k]
				for o := range row {
					row[o] = math.Exp(row[o]) * weight(i)
					if o == c {
						row[o] -= weight(i)
					}
					grad[o*(d+1)+d] += row[o]
				}
			}
			to := blas64.General{Rows: k, Cols: d, Stride: d + 1, Data: grad}
			blas64.Gemm(blas.Trans, blas.NoTrans, 1, blas64.General{Rows: n, Cols: k, Stride: k, Data: logits}, blas64.General{Rows: n, Cols: d, Stride: d, Data: x}, 1, to)
		},
		Status: func() (optimize.Status, error) {
			if err := ctx.Err(); err != nil {
				return optimize.Failure, err
			}
			return optimize.NotTerminated, nil
		},
	}
	// A fit to separable classes has no end: its loss is then 0 but for what further steps would
	// remove.
	result, err := optimize.Minimize(problem, w, &optimize.Settings{GradientThreshold: 1e-7, MajorIterations: 200}, &optimize.LBFGS{})
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if result == nil {
		return 0, fmt.Errorf("%w: %w", errNotConverged, err)
	}
	copy(w, result.X)
	probabilities(result.X)
	var loss float64
	for i, c := range label.of {
		loss -= logits[i*k+c] / float64(n)
	}
	return loss, nil
}
