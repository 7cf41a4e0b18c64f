package prediction

import (
	"math"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/paired"
	"github.com/noether-ml/noether/measure/resample"
)

// ModelSettings configure the measure prediction-agreement.
type ModelSettings struct {
	PerClass bool `key:"per-class" json:"per-class" default:"false" doc:"also compute scores for each class of labels"`
}

// The first columns of ModelAgreement.
const (
	disagreementColumn = iota
	jsColumn
	l2Column
	negativeColumn // fraction of samples that only the first model classifies correctly
	positiveColumn // fraction of samples that only the second model classifies correctly
	changeColumn   // accuracy of the second model less that of the first
	firstColumn    // accuracy of the first model
	secondColumn   // accuracy of the second model
)

// ModelAgreement returns the measure prediction-agreement, which compares the predictions of two
// models on the same inputs. With a and b the accuracies of the first and the second model, and K
// the number of classes,
//
//   - disagreement is the fraction of samples for which the predicted classes differ. js and l2 are
//     the Jensen-Shannon divergence and the Euclidean distance of the probabilities, as in Diverge.
//     The three need no labels.
//   - negative-flips is the fraction of samples that the first model classifies correctly and the
//     second does not, and positive-flips the reverse. accuracy-difference is b - a.
//   - expected-disagreement is the disagreement of models of accuracies a and b whose errors are
//     independent and spread evenly over the other K - 1 classes:
//     a (1 - b) + b (1 - a) + (1 - a)(1 - b)(K - 2) / (K - 1).
//   - normalised-disagreement is (disagreement - low) / (high - low), where low = |a - b| and high
//     = min(2 - a - b, 1) are the bounds that the accuracies set (Klabunde and Lemmerich 2023;
//     Klabunde et al. 2025, min-max-normalised disagreement).
//   - error-consistency is Cohen's kappa of the correctness: (o - e) / (1 - e), where o is the
//     fraction of samples for which both are correct or both are wrong, and e = a b + (1 - a)(1 -
//     b) (Geirhos, Meding and Wichmann 2020).
//
// The null of a statistic is its value by chance. For disagreement, js and l2 it is that of
// shuffled pairs: the prediction of one model for a sample, and of the other for another sample.
// For the others it is the value for independent errors; expected-disagreement has none. The
// per-sample values are disagreement, js, l2, negative-flips, positive-flips, accuracy-difference,
// correct-first, correct-second, predicted-first, predicted-second (indices of classes),
// confidence-first and confidence-second.
//
// Flags describe the columns: Labelled (NaN without a label), Proportion (each value is 0 or 1) and
// Transformed (needs the second model, whose prediction takes the place of that for a transformed
// input). StateVersion is the version of the saved sums.
func ModelAgreement(s ModelSettings) measure.Measure {
	return paired.New(paired.Spec{
		Descriptor: ModelAgreementDescriptor(), Version: 2, StateVersion: 2, Settings: s, PerClass: s.PerClass, Pair: agreementPair,
		Needs: measure.Needs{Prediction: true, OtherModel: true},
		Columns: []paired.Column{
			disagreementColumn: {Statistic: "disagreement", Sample: "disagreement", Proportion: true, Transformed: true},
			jsColumn:           {Statistic: "js", Sample: "js", Transformed: true},
			l2Column:           {Statistic: "l2", Sample: "l2", Transformed: true},
			negativeColumn: {Statistic: "negative-flips", Sample: "negative-flips", Proportion: true, Transformed: true, Labelled: true,
				Null: func(m []float64) float64 { return m[firstColumn] * (1 - m[secondColumn]) }},
			positiveColumn: {Statistic: "positive-flips", Sample: "positive-flips", Proportion: true, Transformed: true, Labelled: true,
				Null: func(m []float64) float64 { return m[secondColumn] * (1 - m[firstColumn]) }},
			changeColumn: {Statistic: "accuracy-difference", Sample: "accuracy-difference", Difference: true, Transformed: true, Labelled: true},
			firstColumn:  {Sample: "correct-first", Labelled: true},
			secondColumn: {Sample: "correct-second", Transformed: true, Labelled: true},
			{Sample: "predicted-first"},
			{Sample: "predicted-second", Transformed: true},
			{Sample: "confidence-first"},
			{Sample: "confidence-second", Transformed: true},
			classesColumn: {},
		},
		Derived: []paired.Derived{
			{Statistic: "error-consistency", Labelled: true, Of: errorConsistency, Extreme: consistencyExtreme,
				Null:      func([]float64) float64 { return 0 },
				Undefined: "both models are right on every sample, or both wrong on every one: there is no variation to be consistent"},
			{Statistic: "expected-disagreement", Labelled: true, Of: expectedDisagreement},
			{Statistic: "normalised-disagreement", Labelled: true, Of: normalisedDisagreement, Extreme: normalisedExtreme,
				Null:      func(m []float64) float64 { return normalised(m, expectedDisagreement(m)) },
				Undefined: "a model is right on every sample, so the accuracies determine the disagreement"},
		},
	})
}

// classesColumn holds the number of classes, the same for every sample. It follows the columns of
// predictions and confidences.
const classesColumn = 12

// agreementPair sets out to the columns of ModelAgreement for one sample, from the
// log-probabilities of two models. Those that need the label are NaN without one.
func agreementPair(out []float64, label int, first, second []float32) error {
	d, sumP, sumQ := diverge(first, second)
	p, err := predictionOf(first, sumP, "first")
	if err != nil {
		return err
	}
	q, err := predictionOf(second, sumQ, "second")
	if err != nil {
		return err
	}
	a, b := oneIf(p.Class == label), oneIf(q.Class == label)
	if label == measure.NoLabel {
		a, b = math.NaN(), math.NaN()
	}
	copy(out, []float64{1 - Agreement(p, q), d.JS, d.L2, a * (1 - b), b * (1 - a), b - a, a, b,
		float64(p.Class), float64(q.Class), p.Confidence, q.Confidence, float64(len(first))})
	return nil
}

// errorConsistency returns the error consistency (see ModelAgreement) from the means of the
// columns. It is NaN if both models are correct for all samples, or both wrong for all.
func errorConsistency(m []float64) float64 {
	expected := expectedConsistency(m)
	if expected >= 1 {
		return math.NaN()
	}
	return 1 - (m[negativeColumn]+m[positiveColumn])/(1-expected)
}

// expectedConsistency returns the fraction of samples for which both models are correct or both are
// wrong, if their errors are independent.
func expectedConsistency(m []float64) float64 {
	a, b := m[firstColumn], m[secondColumn]
	return a*b + (1-a)*(1-b)
}

// consistencyExtreme returns the interval of the error consistency over n samples if there are no
// flips, that is, if both models are correct for the same samples. It follows from Wilson's upper
// bound of the fraction of flips. If there are flips, both bounds are the value itself.
func consistencyExtreme(m []float64, n int) (low, high float64) {
	k := errorConsistency(m)
	if m[negativeColumn]+m[positiveColumn] > 0 {
		return k, k
	}
	_, flips := resample.Wilson(0, n)
	return 1 - flips/(1-expectedConsistency(m)), 1
}

// expectedDisagreement and the functions below take the means of the columns; see ModelAgreement
// for the formulas.
func expectedDisagreement(m []float64) float64 {
	a, b, k := m[firstColumn], m[secondColumn], m[classesColumn]
	return a*(1-b) + b*(1-a) + (1-a)*(1-b)*(k-2)/(k-1)
}

func normalisedDisagreement(m []float64) float64 { return normalised(m, m[disagreementColumn]) }

// normalised scales a disagreement to [0, 1] between the bounds that the accuracies set. It is NaN
// if the bounds are equal.
func normalised(m []float64, disagreement float64) float64 {
	low, high := disagreementBounds(m)
	if high-low < 1e-12 { // equal but for rounding
		return math.NaN()
	}
	return min(max((disagreement-low)/(high-low), 0), 1)
}

// disagreementBounds returns the lowest and the highest disagreement that the accuracies permit.
func disagreementBounds(m []float64) (low, high float64) {
	a, b := m[firstColumn], m[secondColumn]
	return math.Abs(a - b), min(2-a-b, 1)
}

// normalisedExtreme returns the interval of the normalised disagreement if the models agree for all
// n samples. It follows from Wilson's upper bound of the disagreement. If the models disagree for a
// sample, both bounds are the value itself.
func normalisedExtreme(m []float64, n int) (low, high float64) {
	if m[disagreementColumn] > 0 {
		v := normalisedDisagreement(m)
		return v, v
	}
	_, disagreement := resample.Wilson(0, n)
	return 0, normalised(m, disagreement)
}

// ModelAgreementDescriptor describes the measure prediction-agreement.
func ModelAgreementDescriptor() measure.Descriptor {
	const independent = "independent errors"
	return measure.Descriptor{
		Name: "prediction-agreement", Title: "Agreement of two models' predictions", Level: measure.PairLevel, Resampled: "sample",
		Question: "Do two models predict the same for the same inputs, and do they fail on the same ones?",
		Reading:  "Disagreement is 0 if the models predict the same class for every sample. Negative flips are samples that the first model has right and the second wrong: read the update of a model as first → second. Error consistency is 1 if both are right on the same samples, 0 if their errors are independent.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "disagreement", Title: "disagreement", About: "The fraction of samples for which the two predicted classes differ.", Range: measure.ZeroToOne, Direction: measure.Lower, Null: shuffledPairs, PerSample: true},
			{Name: "negative-flips", Title: "negative flips", About: "The fraction of samples that the first model has right and the second wrong.", Range: measure.ZeroToOne, Direction: measure.Lower, Null: independent, Directional: true, PerSample: true},
			{Name: "positive-flips", Title: "positive flips", About: "The fraction of samples that the first model has wrong and the second right.", Range: measure.ZeroToOne, Null: independent, Directional: true, PerSample: true},
			{Name: "accuracy-difference", Title: "difference in accuracy", About: "The accuracy of the second model minus that of the first.", Range: measure.MinusOneToOne, Direction: measure.Higher, Directional: true, PerSample: true},
			{Name: "error-consistency", Title: "error consistency", About: "Cohen's kappa of being right: 1 if both models are right on the same samples, 0 if their errors are independent.", Range: measure.MinusOneToOne, Direction: measure.Higher, Null: independent},
			{Name: "expected-disagreement", Title: "expected disagreement", About: "The disagreement of two models of these accuracies whose errors are independent and spread evenly over the other classes.", Range: measure.ZeroToOne},
			{Name: "normalised-disagreement", Title: "normalised disagreement", About: "Disagreement between the bounds that the two accuracies set: 0 at the lower, 1 at the upper.", Range: measure.ZeroToOne, Direction: measure.Lower, Null: independent},
			{Name: "js", Title: "Jensen-Shannon divergence", About: "Between the two models' probability vectors, in nats; at most ln 2 = 0.693.", Range: measure.Range{High: math.Ln2}, Unit: "nats", Direction: measure.Lower, Null: shuffledPairs, PerSample: true},
			{Name: "l2", Title: "distance of probabilities", About: "The Euclidean distance between the two models' probability vectors.", Range: measure.Range{High: math.Sqrt2}, Direction: measure.Lower, Null: shuffledPairs, PerSample: true},
		},
	}
}
