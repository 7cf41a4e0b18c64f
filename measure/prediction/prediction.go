// Package prediction measures whether a classifier's predictions stay the same when its input is
// transformed, and whether two classifiers predict the same.
//
// Let p and q be the probabilities (softmax) of the K classes that a model predicts for x, the
// clean view of a sample, and for T(x), the transformed view. Three measures compare them; all
// their statistics are means over samples:
//
//   - accuracy: the fraction of samples whose most probable class is their label, on x (clean), on
//     T(x) (moved), and clean - moved (drop). It needs labels. In a study without transformations
//     it has clean only.
//   - effective-invariance (ei): sqrt(max p * max q) if both predict the same class, else 0. It is
//     1 for predictions of the same class with probability 1. It needs no labels. Source: Deng,
//     Gould and Zheng, "On the Strong Correlation Between Model Invariance and Generalization",
//     2022, equation 1.
//   - prediction-divergence: js, the Jensen-Shannon divergence in nats (not its square root, which
//     some libraries call the Jensen-Shannon distance); kl, the Kullback-Leibler divergence KL(p |
//     q); l2, the Euclidean distance |p - q|; agreement, the fraction of samples whose predicted
//     class is the same. Of equally probable classes the first is the predicted one.
//
// ModelAgreement compares the predictions of two models on the same input.
//
// The null of ei and of prediction-divergence is the same mean over shuffled pairs, x of one sample
// with T(x) of another. For instance, two confident classifiers of ten balanced classes agree on a
// tenth of such pairs.
//
// Intervals are Wilson's for proportions (clean, moved, agreement) and a delete-group jackknife,
// over up to twenty parts of the samples, for the other statistics. They are clipped to the range
// of the statistic. If the correctness of no sample changes, drop is 0. Its interval is then
// symmetric, with Wilson's upper bound of the fraction of samples whose correctness changes.
//
// Predict, EI and Diverge compute the terms for a single sample:
//
//	// clean and transformed hold the natural logarithms of the probabilities of K classes.
//	p, err := prediction.Predict(clean)
//	q, err := prediction.Predict(transformed)
//	ei := prediction.EI(p, q)
package prediction

import (
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/paired"
)

// Settings configure each measure of this package.
type Settings struct {
	PerClass bool `key:"per-class" json:"per-class" default:"false" doc:"also compute scores for each class of labels"`
}

// predictionColumns store both predictions of a sample: the class and its probability. Sample is
// its name among the stored per-sample values, and Transformed says that it needs the transformed
// view.
var predictionColumns = []paired.Column{
	{Sample: "predicted-clean"},
	{Sample: "predicted-moved", Transformed: true},
	{Sample: "confidence-clean"},
	{Sample: "confidence-moved", Transformed: true},
}

// Accuracy returns the measure accuracy with the statistics clean, moved and drop. The per-sample
// values are correct-clean, correct-moved, predicted-clean, predicted-moved (indices of classes),
// confidence-clean and confidence-moved.
func Accuracy(s Settings) measure.Measure {
	// A column with a Statistic has its mean as a score, Proportion says that each value is 0 or 1,
	// and Difference that it is the difference of two such values. StateVersion is the version of
	// the saved sums. Guessed: the score clean has a warning unless its interval lies above the
	// accuracy of random guessing.
	return paired.New(paired.Spec{
		Descriptor: AccuracyDescriptor(), Version: 1, StateVersion: 2, Settings: s, PerClass: s.PerClass, Pair: accuracyPair,
		Needs: measure.Needs{Prediction: true, Labels: true, Transformed: true, TransformOptional: true},
		Columns: slices.Concat([]paired.Column{
			{Statistic: "clean", Sample: "correct-clean", Proportion: true, Guessed: true},
			{Statistic: "moved", Sample: "correct-moved", Proportion: true, Transformed: true},
			{Statistic: "drop", Difference: true, Transformed: true},
		}, predictionColumns),
	})
}

// EffectiveInvariance returns the measure effective-invariance with the statistic ei. The
// per-sample values are ei, predicted-clean, predicted-moved, confidence-clean and
// confidence-moved.
func EffectiveInvariance(s Settings) measure.Measure {
	return paired.New(paired.Spec{
		Descriptor: EffectiveInvarianceDescriptor(), Version: 1, StateVersion: 2, Settings: s, PerClass: s.PerClass, Pair: invariancePair,
		Needs:   measure.Needs{Prediction: true, Transformed: true},
		Columns: slices.Concat([]paired.Column{{Statistic: "ei", Sample: "ei", Transformed: true}}, predictionColumns),
	})
}

// Divergence returns the measure prediction-divergence with the statistics js, kl, l2 and
// agreement. The per-sample values have the same names.
func Divergence(s Settings) measure.Measure {
	return paired.New(paired.Spec{
		Descriptor: DivergenceDescriptor(), Version: 1, StateVersion: 2, Settings: s, PerClass: s.PerClass, Pair: divergencePair,
		Needs: measure.Needs{Prediction: true, Transformed: true},
		Columns: []paired.Column{
			{Statistic: "js", Sample: "js", Transformed: true},
			{Statistic: "kl", Sample: "kl", Transformed: true},
			{Statistic: "l2", Sample: "l2", Transformed: true},
			{Statistic: "agreement", Sample: "agreement", Proportion: true, Transformed: true},
		},
	})
}

// accuracyPair computes the columns of Accuracy. If there is no transformed view, the columns that
// need it (Column.Transformed) have no meaning and are not read.
func accuracyPair(out []float64, label int, clean, transformed []float32) error {
	p, err := predict(clean, "clean")
	if err != nil {
		return err
	}
	var q Prediction
	if transformed != nil {
		if q, err = predict(transformed, "transformed"); err != nil {
			return err
		}
	}
	before, after := oneIf(p.Class == label), oneIf(q.Class == label)
	copy(out, []float64{before, after, before - after, float64(p.Class), float64(q.Class), p.Confidence, q.Confidence})
	return nil
}

func invariancePair(out []float64, _ int, clean, transformed []float32) error {
	p, q, err := predictBoth(clean, transformed)
	copy(out, []float64{EI(p, q), float64(p.Class), float64(q.Class), p.Confidence, q.Confidence})
	return err
}

func divergencePair(out []float64, _ int, clean, transformed []float32) error {
	d, sumP, sumQ := diverge(clean, transformed)
	p, err := predictionOf(clean, sumP, "clean")
	if err != nil {
		return err
	}
	q, err := predictionOf(transformed, sumQ, "transformed")
	if err != nil {
		return err
	}
	copy(out, []float64{d.JS, d.KL, d.L2, Agreement(p, q)})
	return nil
}
