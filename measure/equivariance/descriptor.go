package equivariance

import "github.com/noether-ml/noether/measure"

// Descriptor describes the measure.
func Descriptor() measure.Descriptor {
	// The null compares one sample with another, transformed one.
	const null = "shuffled pairs"
	return measure.Descriptor{
		Name: "equivariance-error", Title: "Equivariance error of feature maps", Level: measure.LayerLevel, Resampled: "sample",
		Question: "Do a layer's feature maps move as the input does?",
		Reading:  "An error of 0 means that the maps of the transformed input are the transformed maps. An error at the floor is that of interpolation alone; the null is the error between unrelated samples. A layer can keep all spatial information and still have a large error, if its maps change in another way.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "relative-error", Title: "relative error", About: "The norm of the difference between the maps of the transformed input and the transformed maps, divided by the norm of the latter.", Range: measure.NotNegative, Direction: measure.Lower, Null: null, PerSample: true},
			{Name: "cosine", Title: "cosine", About: "The cosine of the angle between the maps of the transformed input and the transformed maps.", Range: measure.MinusOneToOne, Direction: measure.Higher, Null: null, PerSample: true},
			{Name: "floor", Title: "interpolation floor", About: "The relative error of transforming the maps and back: what interpolation alone costs. 0 for flips, quarter turns of square maps, and translations by whole positions.", Range: measure.NotNegative, PerSample: true},
		},
	}
}
