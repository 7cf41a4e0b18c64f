package prediction

import (
	"fmt"
	"math"

	"github.com/noether-ml/noether/measure"
)

// A Prediction is the most probable class and its probability. Of equally probable classes it is
// the first.
type Prediction struct {
	Class      int
	Confidence float64
}

// Predict returns the prediction for natural log-probabilities of K classes. Minus infinity is a
// probability of zero. NaN or plus infinity is an error (*measure.NonFinite). It is also an error
// if the sum of the probabilities differs from 1 by more than 0.01, for instance for logits.
func Predict(logp []float32) (Prediction, error) { return predict(logp, "") }

// predict is Predict with the view of a sample, clean (x) or transformed (T(x)), that an error
// names.
func predict(logp []float32, view string) (Prediction, error) {
	sum := 0.0
	for _, v := range logp {
		sum += math.Exp(float64(v))
	}
	return predictionOf(logp, sum, view)
}

// predictionOf is predict with the sum of the probabilities.
func predictionOf(logp []float32, sum float64, view string) (Prediction, error) {
	if math.IsNaN(sum) || math.IsInf(sum, 0) {
		return Prediction{}, &measure.NonFinite{View: view}
	}
	if math.Abs(sum-1) > 0.01 {
		return Prediction{}, fmt.Errorf("the prediction is not a distribution: its %d probabilities add up to %.4g, not 1", len(logp), sum)
	}
	best := 0
	for i, v := range logp {
		if v > logp[best] {
			best = i
		}
	}
	return Prediction{best, math.Exp(float64(logp[best]))}, nil
}

func predictBoth(clean, transformed []float32) (p, q Prediction, err error) {
	if p, err = predict(clean, "clean"); err == nil {
		q, err = predict(transformed, "transformed")
	}
	return p, q, err
}

// EI returns the effective invariance of a pair, x and T(x): sqrt(p q) for the probabilities p and
// q of the predicted classes if these are the same, else 0 (Deng, Gould and Zheng 2022, equation
// 1).
func EI(clean, transformed Prediction) float64 {
	if clean.Class != transformed.Class {
		return 0
	}
	return math.Sqrt(clean.Confidence * transformed.Confidence)
}

// Agreement returns 1 if both predictions are the same class, else 0.
func Agreement(clean, transformed Prediction) float64 { return oneIf(clean.Class == transformed.Class) }

// oneIf returns 1 for true and 0 for false.
func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// Divergences are the differences between two distributions over the same classes: p, of x or of
// the first model, and q, of T(x) or of the second model.
type Divergences struct {
	// JS is the Jensen-Shannon divergence, (KL(p | m) + KL(q | m)) / 2 with m = (p + q) / 2: 0 to
	// ln 2.
	JS float64
	KL float64 // Kullback-Leibler divergence KL(p | q) = sum p ln(p / q): at least 0
	L2 float64 // Euclidean distance |p - q|: 0 to sqrt 2
}

// Diverge returns the divergences of two distributions, given as natural log-probabilities of the
// same K classes.
func Diverge(clean, transformed []float32) Divergences {
	d, _, _ := diverge(clean, transformed)
	return d
}

// diverge is Diverge, and returns the sums of both distributions' probabilities.
func diverge(clean, transformed []float32) (d Divergences, sumP, sumQ float64) {
	for i := range clean {
		p, logp := probability(clean[i])
		q, logq := probability(transformed[i])
		sumP, sumQ = sumP+p, sumQ+q
		if p == q {
			continue // the terms are 0; if p and q are 0, logm is not finite
		}
		logm := math.Log(p+q) - math.Ln2 // half of the smallest float64 would be 0
		d.JS += (p*(logp-logm) + q*(logq-logm)) / 2
		d.KL += p * (logp - logq)
		d.L2 += (p - q) * (p - q)
	}
	// In float32 the probabilities add up to 1 only to about seven digits, so a divergence may be a
	// little outside its range.
	return Divergences{JS: min(max(d.JS, 0), math.Ln2), KL: max(d.KL, 0), L2: min(math.Sqrt(d.L2), math.Sqrt2)}, sumP, sumQ
}

// logTiny is the logarithm of 2^-149, the smallest positive float32.
const logTiny = -149 * math.Ln2

// probability returns e^logp and its logarithm. A softmax may return exactly 0 for a probability
// that is too small for float32. Its logarithm is then logTiny, so that divergences are finite.
func probability(logp float32) (p, log float64) {
	log = float64(logp)
	if math.IsInf(log, -1) {
		return 0, logTiny
	}
	return math.Exp(log), log
}
