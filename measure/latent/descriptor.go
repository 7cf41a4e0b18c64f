package latent

import "github.com/noether-ml/noether/measure"

// Descriptor describes the measure.
func Descriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "latent-operator", Title: "Latent operators", Level: measure.LayerLevel, Resampled: "sample",
		Question: "Which linear operator on a layer's feature maps explains the transformation of the input?",
		Reading:  "R² near 1 for place: the maps move as the input does. Where channels (a linear map of the channels) or both (movement and such a map) explain more, the layer also mixes its channels. 0 is the value of predicting the mean. R² is below 0 where identity or place, which have no fitted parameters, do worse than that.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "r2", Title: "R²", About: "The fraction of the variance of the transformed maps that the operator explains, on samples that it was not fitted on.", Range: measure.AtMostOne, Direction: measure.Higher},
		},
	}
}
