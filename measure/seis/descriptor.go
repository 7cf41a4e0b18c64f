package seis

import "github.com/noether-ml/noether/measure"

// Descriptor describes the measure.
func Descriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "seis", Title: "SEIS: spatial equivariance and invariance", Level: measure.LayerLevel, Resampled: "sample",
		Question: "Does a layer preserve spatial information when the input is transformed, and at the same positions?",
		Reading:  "Equivariance near 1: a linear map of positions predicts the transformed feature maps from the clean ones. Invariance near 1: they are the same. The null is the score of shuffled pairs: a score near its null is no better than chance.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "equivariance", Title: "equivariance", About: "Mean canonical correlation between the clean and the transformed feature maps.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: "shuffled pairs"},
			{Name: "invariance", Title: "invariance", About: "Mean of the canonical correlations, each times the absolute cosine between the two spatial patterns.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: "shuffled pairs"},
			{Name: "rank", Title: "rank", About: "Number of canonical correlations: the smaller of the dimensions of the two spatial subspaces, which hold a given fraction of the variance.", Range: measure.NotNegative, Unit: "dimensions"},
			{Name: "null-equivariance", Title: "equivariance of shuffled pairs", About: "Equivariance by chance.", Range: measure.ZeroToOne},
			{Name: "null-invariance", Title: "invariance of shuffled pairs", About: "Invariance by chance.", Range: measure.ZeroToOne},
		},
	}
}
