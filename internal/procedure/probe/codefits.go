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

// sap returns the separated attribute predictability (Kumar et al. 2018): the mean over factors of
// the difference between the two components that predict it best. The prediction of a number is the
// squared correlation, that of a category the accuracy of a linear support vector machine on one
// component, fitted to the first train samples and tested on the others.
func sap(z [][]float64, factors []codeFactor, labels []classes, train int) float64 {
	var out float64
	for j, f := range factors {
		var scores []float64
		for _, values := range z {
			if f.categorical {
				scores = append(scores, oneAxisAccuracy(values, labels[j], train))
				continue
			}
			var squared float64
			if stat.Variance(values[:train], nil) > 1e-12 {
				r := stat.Correlation(values[:train], f.value[:train], nil)
				squared = r * r
			}
			scores = append(scores, squared)
		}
		out += topGap(scores) / float64(len(factors))
	}
	return out
}

// oneAxisAccuracy returns the accuracy of linear support vector machines, one against the rest, on
// one variable: squared hinge loss with weights that balance the classes and C = 0.01, where the
// intercept is penalised as a weight, as in liblinear.
func oneAxisAccuracy(x []float64, label classes, train int) float64 {
	count := make([]float64, label.count)
	present := 0.0
	for _, c := range label.of[:train] {
		if count[c] == 0 {
			present++
		}
		count[c]++
	}
	// The weight of a class in each problem is n / (classes count), as of scikit-learn's balanced.
	weights := make([]float64, label.count)
	for c, n := range count {
		if n > 0 {
			weights[c] = float64(train) / (present * n)
		}
	}
	type line struct{ w, b float64 }
	lines := make([]line, label.count)
	for c := range lines {
		if count[c] == 0 {
			continue
		}
		others := weights
		if present > 2 { // liblinear weighs only the class that is told from the rest
			others = slices.Repeat([]float64{1}, label.count)
			others[c] = weights[c]
		}
		lines[c].w, lines[c].b = supportVector(x[:train], label.of[:train], c, others)
		if present == 2 { // a single line decides
			for o := range lines {
				if o != c && count[o] > 0 {
					lines[o] = line{-lines[c].w, -lines[c].b}
				}
			}
			break
		}
	}
	right := 0
	for i := train; i < len(x); i++ {
		best, most := -1, math.Inf(-1)
		for c, l := range lines {
			if v := l.w*x[i] + l.b; count[c] > 0 && v > most {
				best, most = c, v
			}
		}
		if best == label.of[i] {
			right++
		}
	}
	return float64(right) / float64(len(x)-train)
}

// supportVector minimises (w² + b²) / 2 + 0.01 Σ c_i max(0, 1 - y_i (w x_i + b))² by Newton's
// method, with y_i = 1 for the class and -1 for others, and c_i the weight of the sample's class.
func supportVector(x []float64, label []int, class int, weights []float64) (w, b float64) {
	const c = 0.01
	loss := func(w, b float64) float64 {
		sum := (w*w + b*b) / 2
		for i, v := range x {
			if m := 1 - sign(label[i] == class)*(w*v+b); m > 0 {
				sum += c * weights[label[i]] * m * m
			}
		}
		return sum
	}
	current := loss(0, 0)
	for range 100 {
		gw, gb, hww, hwb, hbb := w, b, 1., 0., 1.
		for i, v := range x {
			y := sign(label[i] == class)
			m := 1 - y*(w*v+b)
			if m <= 0 {
				continue
			}
			f := 2 * c * weights[label[i]]
			gw, gb = gw-f*m*y*v, gb-f*m*y
			hww, hwb, hbb = hww+f*v*v, hwb+f*v, hbb+f
		}
		det := hww*hbb - hwb*hwb
		dw, db := -(hbb*gw-hwb*gb)/det, -(hww*gb-hwb*gw)/det
		step := 1.
		next := loss(w+dw, b+db)
		for next > current && step > 1e-10 {
			step /= 2
			next = loss(w+step*dw, b+step*db)
		}
		w, b = w+step*dw, b+step*db
		if math.Abs(step*dw)+math.Abs(step*db) < 1e-12*(1+math.Abs(w)+math.Abs(b)) {
			break
		}
		current = next
	}
	return w, b
}

func sign(positive bool) float64 {
	if positive {
		return 1
	}
	return -1
}

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
