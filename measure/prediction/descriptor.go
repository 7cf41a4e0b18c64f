package prediction

import (
	"math"

	"github.com/noether-ml/noether/measure"
)

// AccuracyDescriptor describes the measure accuracy.
func AccuracyDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "accuracy", Title: "Accuracy", Level: measure.ModelLevel, Resampled: "sample",
		Question: "Is the class still right when the input is transformed?",
		Reading:  "The share of samples whose top class is the label: on the data as they are, on the transformed data, and the difference.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "moved", Title: "accuracy on transformed data", About: "The share of transformed samples classified as labelled.", Range: measure.ZeroToOne, Direction: measure.Higher, PerSample: true},
			{Name: "drop", Title: "drop in accuracy", About: "Accuracy on the data as they are, minus accuracy on the transformed data.", Range: measure.MinusOneToOne, Direction: measure.Lower},
			{Name: "clean", Title: "accuracy", About: "The share of samples classified as labelled, untransformed.", Range: measure.ZeroToOne, Untransformed: true, PerSample: true},
		},
	}
}

// EffectiveInvarianceDescriptor describes the measure effective-invariance.
func EffectiveInvarianceDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "effective-invariance", Title: "Effective invariance", Level: measure.ModelLevel, Resampled: "sample",
		Question: "Does the prediction hold when the input is transformed, and hold with confidence?",
		Reading:  "1 where both predictions name the same class with full confidence, 0 where they name different classes. It needs no labels. The null pairs each sample with another one.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "ei", Title: "effective invariance", About: "The geometric mean of the two confidences where the classes agree, else 0; averaged over samples.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: shuffledPairs, PerSample: true},
		},
	}
}

// DivergenceDescriptor describes the measure prediction-divergence.
func DivergenceDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "prediction-divergence", Title: "Prediction divergence", Level: measure.ModelLevel, Resampled: "sample",
		Question: "How far do the predicted probabilities move when the input is transformed?",
		Reading:  "Divergences are 0 where nothing moves; agreement is the plain share of samples whose top class stays. The null pairs each sample with another one.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "js", Title: "Jensen-Shannon divergence", About: "Between the two probability vectors, in nats; at most ln 2 = 0.693.", Range: measure.Range{High: math.Ln2}, Unit: "nats", Direction: measure.Lower, Null: shuffledPairs, PerSample: true},
			{Name: "kl", Title: "Kullback-Leibler divergence", About: "Of the clean probabilities from the moved ones, in nats; has no upper bound.", Range: measure.NotNegative, Unit: "nats", Direction: measure.Lower, Null: shuffledPairs, PerSample: true},
			{Name: "l2", Title: "distance of probabilities", About: "The Euclidean distance between the two probability vectors.", Range: measure.Range{High: math.Sqrt2}, Direction: measure.Lower, Null: shuffledPairs, PerSample: true},
			{Name: "agreement", Title: "agreement", About: "The share of samples whose top class stays the same.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: shuffledPairs, PerSample: true},
		},
	}
}

const shuffledPairs = "shuffled pairs"
