package prediction

import (
	"math"

	"github.com/noether-ml/noether/measure"
)

// AccuracyDescriptor describes the measure accuracy. Here and below, clean is of samples that are
// not transformed, moved of transformed ones, and Resampled names what the intervals resample. A
// statistic marked PerSample is a mean over samples.
func AccuracyDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "accuracy", Title: "Accuracy", Level: measure.ModelLevel, Resampled: "sample",
		Question: "Is the prediction still correct when the input is transformed?",
		Reading:  "The fraction of samples whose predicted class is the label: on the clean data, on the transformed data, and the difference.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "moved", Title: "accuracy on transformed data", About: "The fraction of transformed samples that are classified correctly.", Range: measure.ZeroToOne, Direction: measure.Higher, PerSample: true},
			{Name: "drop", Title: "drop in accuracy", About: "Accuracy on the clean data minus accuracy on the transformed data.", Range: measure.MinusOneToOne, Direction: measure.Lower},
			{Name: "clean", Title: "accuracy", About: "The fraction of clean samples that are classified correctly.", Range: measure.ZeroToOne, Untransformed: true, PerSample: true},
		},
	}
}

// EffectiveInvarianceDescriptor describes the measure effective-invariance.
func EffectiveInvarianceDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "effective-invariance", Title: "Effective invariance", Level: measure.ModelLevel, Resampled: "sample",
		Question: "Does the prediction stay the same when the input is transformed, and how confident is it?",
		Reading:  "1 if both predictions are the same class with probability 1, 0 if they are different classes. It needs no labels. The null pairs each sample with another one.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "ei", Title: "effective invariance", About: "1 if every prediction keeps its class with probability 1, 0 if every class changes. It is the mean over samples of the geometric mean of the two predicted probabilities, 0 where the classes differ.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: shuffledPairs, PerSample: true},
		},
	}
}

// DivergenceDescriptor describes the measure prediction-divergence.
func DivergenceDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "prediction-divergence", Title: "Prediction divergence", Level: measure.ModelLevel, Resampled: "sample",
		Question: "How much do the predicted probabilities change when the input is transformed?",
		Reading:  "Divergences are 0 if the probabilities do not change. Agreement compares only the predicted classes. The null pairs each sample with another one.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "js", Title: "Jensen-Shannon divergence", About: "Between the two probability vectors, in nats; at most ln 2 = 0.693.", Range: measure.Range{High: math.Ln2}, Unit: "nats", Direction: measure.Lower, Null: shuffledPairs, PerSample: true},
			{Name: "kl", Title: "Kullback-Leibler divergence", About: "KL(p | q) of the clean probabilities p and the transformed ones q, in nats; not bounded above.", Range: measure.NotNegative, Unit: "nats", Direction: measure.Lower, Null: shuffledPairs, PerSample: true},
			{Name: "l2", Title: "distance of probabilities", About: "The Euclidean distance between the two probability vectors.", Range: measure.Range{High: math.Sqrt2}, Direction: measure.Lower, Null: shuffledPairs, PerSample: true},
			{Name: "agreement", Title: "agreement", About: "The fraction of samples whose predicted class stays the same.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: shuffledPairs, PerSample: true},
		},
	}
}

// shuffledPairs describes a null, the value of a statistic that chance alone gives: it is computed
// on x of one sample and T(x), the transformed x, of another.
const shuffledPairs = "shuffled pairs"
