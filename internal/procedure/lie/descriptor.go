package lie

import "github.com/noether-ml/noether/measure"

// Descriptor describes the measure: its questions, and the range and better direction of each of
// its statistics. Scores on shuffled pairs are their null, the value that chance alone gives. Their
// intervals account for the choice of samples (Resampled).
func Descriptor() measure.Descriptor {
	const null = "shuffled pairs"
	return measure.Descriptor{
		Name: "lie-derivative", Title: "Lie derivative", Level: measure.LayerLevel, Resampled: "sample",
		Question: "How fast does a layer depart from moving as the input does, for infinitely small transformations?",
		Reading:  "0 means that the feature maps move exactly as the input does, or, for vectors, do not change. The null compares the change of the maps with the movement of another image's maps. The contributions say in which layers the change of the prediction arises.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "lee", Title: "local equivariance error", About: "The mean over samples of the squared norm of the Lie derivative of the layer, divided by its number of values.", Range: measure.NotNegative, Unit: measure.ActivationScale, Direction: measure.Lower, Null: null},
			{Name: "relative", Title: "relative Lie derivative", About: "The norm of the Lie derivative divided by that of the activation: the relative error for each unit of the transformation.", Range: measure.NotNegative, Direction: measure.Lower, Null: null},
			{Name: "contribution", Title: "contribution to the output's error", About: "The squared norm, divided by the number of classes, of J D: D is the Lie derivative of the part of the network that computes this layer from the image and the chosen layers before it, and J is the Jacobian of the model's output with respect to this layer.", Range: measure.NotNegative, Direction: measure.Lower},
		},
	}
}
