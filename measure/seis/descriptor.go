package seis

import "github.com/noether-ml/noether/measure"

// Descriptor describes the measure.
func Descriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "seis", Title: "SEIS: spatial equivariance and invariance", Level: measure.LayerLevel, Resampled: "sample",
		Question: "Is the spatial information of a layer still there after the transformation, and is it still in the same place?",
		Reading:  "Equivariance near 1: the layer's maps move in a way that one linear map undoes. Invariance near 1: they stay where they are. The null is what shuffled pairs give: a score at its null is chance.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "equivariance", Title: "equivariance", About: "Mean canonical correlation between the clean and the moved feature maps.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: "shuffled pairs"},
			{Name: "invariance", Title: "invariance", About: "How far the matching spatial patterns coincide in place.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: "shuffled pairs"},
			{Name: "rank", Title: "rank", About: "Dimensions of the spatial subspace that holds the variance asked for.", Range: measure.NotNegative, Unit: "dimensions"},
			{Name: "null-equivariance", Title: "equivariance of shuffled pairs", About: "What chance alone gives for equivariance.", Range: measure.ZeroToOne},
			{Name: "null-invariance", Title: "invariance of shuffled pairs", About: "What chance alone gives for invariance.", Range: measure.ZeroToOne},
		},
	}
}
