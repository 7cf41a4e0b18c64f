package stir

import (
	"github.com/noether-ml/noether/measure"
)

// Descriptor describes the measure.
func Descriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "stir", Title: "STIR: shared invariances", Level: measure.PairLevel, Resampled: "sample",
		Question: "Which inputs are the same to the first model, and are they the same to the second?",
		Reading:  "For each sample another input is sought that the first model, the reference, maps to the same representation. STIR is 1 where the second model maps the two alike as well: it ignores whatever the reference ignores. It has a direction. CKA compares the two models on the data alone, and knows nothing of invariances.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "stir", Title: "STIR", About: "Similarity of the second model's representations of the samples and of the inputs that are the same to the reference.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: "shuffled pairs", Directional: true},
			{Name: "stir-adversarial", Title: "adversarial STIR", About: "The same with inputs that are sought to differ to the second model as well: the worst case.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: "shuffled pairs", Directional: true},
			{Name: "cka", Title: "linear CKA", About: "Of the two models' representations of the samples.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: "shuffled pairs"},
			{Name: "similarity", Title: "similarity", About: "Of the two models' representations of the samples, by the variant's statistic.", Range: measure.AtMostOne, Direction: measure.Higher, Null: "shuffled pairs", Directional: true},
			{Name: "agreement", Title: "agreement", About: "The share of inputs found to which both models give the same class.", Range: measure.ZeroToOne, Direction: measure.Higher, Directional: true},
			{Name: "representation-distance", Title: "distance reached", About: "Of the reference's representations of a sample and of the input found for it, relative to the length of the former.", Range: measure.NotNegative, Directional: true},
			{Name: "missed", Title: "share that missed", About: "Of inputs whose representation did not come near enough to the sample's.", Range: measure.ZeroToOne, Directional: true},
			{Name: "input-distance", Title: "distance of inputs", About: "Between a sample and the input found for it, in the l2 norm of images in [0, 1].", Range: measure.NotNegative, Directional: true},
		},
	}
}
