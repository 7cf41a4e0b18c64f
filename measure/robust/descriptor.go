package robust

import "github.com/noether-ml/noether/measure"

// Descriptor describes the measure.
func Descriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "robust-accuracy", Title: "Robust accuracy", Level: measure.ModelLevel, Resampled: "sample",
		Question: "Is the class still right after the worst small change of the image?",
		Reading:  "Projected gradient descent looks for a change within a ball around the image that makes the class wrong. What withstands it may still fall to a stronger search.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "robust", Title: "robust accuracy", About: "The share of samples whose class stays right throughout the ball, as far as the search finds.", Range: measure.ZeroToOne, Direction: measure.Higher},
			{Name: "clean", Title: "accuracy", About: "The share of samples classified as labelled, unchanged.", Range: measure.ZeroToOne, Untransformed: true},
		},
	}
}
