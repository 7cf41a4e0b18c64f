package stir

import (
	"github.com/noether-ml/noether/measure"
)

// Descriptor describes the measure.
func Descriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "stir", Title: "STIR: shared invariances", Level: measure.PairLevel, Resampled: "sample",
		Question: "Does the second model share the invariances of the first, the reference?",
		Reading:  "For each sample a search finds another input that the reference maps to the same representation. STIR (similarity through inverted representations) is the similarity of the second model's representations of the samples and of these inputs. It is 1 if the second model has all invariances of the reference. It is not symmetric. CKA (centred kernel alignment) compares the two models on the samples only, and does not measure invariances.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "stir", Title: "STIR", About: "Similarity of the second model's representations of the samples and of the inputs found, which the reference maps to the same representations.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: "shuffled pairs", Directional: true},
			{Name: "stir-adversarial", Title: "adversarial STIR", About: "STIR for inputs that the search also makes the second model represent differently from the samples: the worst case.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: "shuffled pairs", Directional: true},
			{Name: "cka", Title: "linear CKA", About: "Linear CKA of the two models' representations of the samples.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: "shuffled pairs"},
			{Name: "similarity", Title: "similarity", About: "Similarity of the two models' representations of the samples, by the statistic that the scores' column variant names.", Range: measure.AtMostOne, Direction: measure.Higher, Null: "shuffled pairs", Directional: true},
			{Name: "agreement", Title: "agreement", About: "The fraction of the inputs found for which both models predict the same class.", Range: measure.ZeroToOne, Direction: measure.Higher, Directional: true},
			{Name: "representation-distance", Title: "distance reached", About: "Distance between the reference's representations of a sample and of the input found for it, relative to the norm of the former.", Range: measure.NotNegative, Directional: true},
			{Name: "missed", Title: "fraction missed", About: "The fraction of the inputs found whose representation distance is above the setting delta.", Range: measure.ZeroToOne, Directional: true},
			{Name: "input-distance", Title: "distance of inputs", About: "Euclidean distance between a sample and the input found for it, for images with values in [0, 1].", Range: measure.NotNegative, Directional: true},
		},
	}
}
