// Package prediction measures whether a classifier's predictions stay the same when its input is transformed.
//
// Write p and q for the probabilities (softmax) that a model gives the K classes on x and on T(x). Three measures
// read them, each a mean over samples:
//
//   - accuracy: the share of samples whose most probable class is their label, on x (clean), on T(x) (moved), and
//     clean - moved (drop). It needs labels. In a study without transformations it gives clean alone.
//   - effective-invariance (ei): sqrt(max p * max q) where both predict the same class, else 0. It wants the same answer
//     and confidence in it: Deng, Gould and Zheng, "On the Strong Correlation Between Model Invariance and
//     Generalization", 2022, equation 1. No labels needed.
//   - prediction-divergence: js, the Jensen-Shannon divergence in nats (the divergence, not its square root, which some
//     libraries call the Jensen-Shannon distance); kl, the Kullback-Leibler divergence of moved from clean; l2, the Euclidean
//     distance |p - q|; agreement, the share of samples whose predicted class is the same. Of equally probable classes
//     the first counts as predicted.
//
// The null of ei and of prediction-divergence is the same mean over shuffled pairs, x of one sample with T(x) of
// another: what a model that ignores its input's identity would show. Two confident classifiers of ten balanced classes agree
// on a tenth of such pairs.
//
// Intervals are Wilson's for the proportions (clean, moved, agreement) and a delete-group jackknife for
// the others, clipped to the range of the statistic. If no sample's correctness changes, drop is 0 and
// its interval is Wilson's for the share of samples whose correctness changes, on both sides of 0.
package prediction

import (
	"math"
	"slices"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/internal/paired"
)

// Settings are those of every measure of this package.
type Settings struct {
	PerClass bool `key:"per-class" json:"per-class" default:"false" doc:"also give the scores of each class of labels"`
}

// predictionColumns are what is kept of both predictions of a sample.
var predictionColumns = []paired.Column{
	{Sample: "predicted-clean"},
	{Sample: "predicted-moved", Moved: true},
	{Sample: "confidence-clean"},
	{Sample: "confidence-moved", Moved: true},
}

// Accuracy returns the measure accuracy: clean, moved, drop. Per-sample values are correct-clean, correct-moved,
// predicted-clean, predicted-moved (classes as numbers), confidence-clean and confidence-moved.
func Accuracy(s Settings) measure.Measure {
	return &family{
		descriptor: AccuracyDescriptor(),
		settings:   s,
		needs:      measure.Needs{Prediction: true, Labels: true, Moved: true, CleanServes: true},
		spec: paired.Spec{
			Kind: "accuracy", Version: 2, Pair: accuracyPair,
			Columns: slices.Concat([]paired.Column{
				{Statistic: "clean", Sample: "correct-clean", Max: 1, Proportion: true},
				{Statistic: "moved", Sample: "correct-moved", Max: 1, Proportion: true, Moved: true},
				{Statistic: "drop", Min: -1, Max: 1, Difference: true, Moved: true},
			}, predictionColumns),
			ClassRows: true, Labels: true, CleanServes: true, PerClass: s.PerClass,
		},
	}
}

// EffectiveInvariance returns the measure effective-invariance: ei. Per-sample values are ei, predicted-clean,
// predicted-moved, confidence-clean and confidence-moved.
func EffectiveInvariance(s Settings) measure.Measure {
	return &family{
		descriptor: EffectiveInvarianceDescriptor(),
		settings:   s,
		needs:      measure.Needs{Prediction: true, Moved: true},
		spec: paired.Spec{
			Kind: "effective-invariance", Version: 2, Pair: invariancePair,
			Columns: slices.Concat([]paired.Column{
				{Statistic: "ei", Sample: "ei", Max: 1, Null: true, Moved: true},
			}, predictionColumns),
			ClassRows: true, PerClass: s.PerClass,
		},
	}
}

// Divergence returns the measure prediction-divergence: js, kl, l2, agreement; the same are its per-sample values.
func Divergence(s Settings) measure.Measure {
	return &family{
		descriptor: DivergenceDescriptor(),
		settings:   s,
		needs:      measure.Needs{Prediction: true, Moved: true},
		spec: paired.Spec{
			Kind: "prediction-divergence", Version: 2, Pair: divergencePair,
			Columns: []paired.Column{
				{Statistic: "js", Sample: "js", Max: math.Ln2, Null: true, Moved: true},
				{Statistic: "kl", Sample: "kl", Max: math.Inf(1), Null: true, Moved: true},
				{Statistic: "l2", Sample: "l2", Max: math.Sqrt2, Null: true, Moved: true},
				{Statistic: "agreement", Sample: "agreement", Max: 1, Proportion: true, Null: true, Moved: true},
			},
			ClassRows: true, PerClass: s.PerClass,
		},
	}
}

// accuracyPair fills the columns of Accuracy; those that need the moved view are zero where there is none.
func accuracyPair(out []float64, label int, clean, moved []float32) error {
	c, err := predict(clean, "clean")
	if err != nil {
		return err
	}
	var m Prediction
	if moved != nil {
		if m, err = predict(moved, "moved"); err != nil {
			return err
		}
	}
	right, still := oneIf(c.Class == label), oneIf(m.Class == label)
	copy(out, []float64{right, still, right - still, float64(c.Class), float64(m.Class), c.Confidence, m.Confidence})
	return nil
}

func invariancePair(out []float64, _ int, clean, moved []float32) error {
	c, m, err := predictBoth(clean, moved)
	copy(out, []float64{EI(c, m), float64(c.Class), float64(m.Class), c.Confidence, m.Confidence})
	return err
}

func divergencePair(out []float64, _ int, clean, moved []float32) error {
	c, m, err := predictBoth(clean, moved)
	if err != nil {
		return err
	}
	d := Diverge(clean, moved)
	copy(out, []float64{d.JS, d.KL, d.L2, Agreement(c, m)})
	return nil
}

// A family is one of the three measures.
type family struct {
	descriptor measure.Descriptor
	spec       paired.Spec
	settings   Settings
	needs      measure.Needs
}

func (f *family) Name() string                   { return f.spec.Kind }
func (f *family) Descriptor() measure.Descriptor { return f.descriptor }
func (f *family) Version() int                   { return 1 }
func (f *family) Settings() any                  { return f.settings }
func (f *family) Needs() measure.Needs           { return f.needs }

// Skip wants a model that gives each class a score.
func (f *family) Skip(s measure.Site) string {
	if len(s.Classes) < 2 {
		return "the model's output is not a score for each of several classes"
	}
	return ""
}

// Cost is a few numbers for each class and jackknife group.
func (f *family) Cost(s measure.Site) int64 { return f.spec.Cost(s, len(s.Classes)) }

func (f *family) New(s measure.Site) (measure.Accumulator, error) {
	return paired.New(&f.spec, s, len(s.Classes)), nil
}
