package probe

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

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
