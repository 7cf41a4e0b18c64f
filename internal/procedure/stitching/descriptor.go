package stitching

import "github.com/noether-ml/noether/measure"

// Descriptor describes the measure.
func Descriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "stitching", Title: "Model stitching", Level: measure.PairLevel, Resampled: "sample",
		Question: "Can the second model continue from a layer of the first, after a linear map between the two layers?",
		Reading:  "The stitched network is the first model up to its layer, a trained linear map (the stitch), and the second model from its layer on. If it is as accurate as the second model, the first layer contains what the rest of the second model uses, in a form that a linear map can read. The stitch is trained for accuracy, so it may find what similarity on the data does not show. Exchanging the two models changes the scores.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "accuracy", Title: "accuracy of the stitched network", About: "The fraction of held-out samples that the stitched network classifies correctly.", Range: measure.ZeroToOne, Direction: measure.Higher, Directional: true},
			{Name: "gain", Title: "gain by training the stitch", About: "The accuracy of the stitched network minus that with the untrained stitch, on the same samples.", Range: measure.MinusOneToOne, Direction: measure.Higher, Directional: true},
			{Name: "penalty", Title: "stitching penalty", About: "The accuracy of the second model minus that of the stitched network, on the same samples.", Range: measure.MinusOneToOne, Direction: measure.Lower, Directional: true},
		},
	}
}
