package distance

import "github.com/noether-ml/noether/measure"

// Descriptor describes the measure.
func Descriptor() measure.Descriptor {
	const units, null = measure.ActivationScale, "shuffled pairs"
	fixed := measure.Range{Low: 0, High: 2}
	return measure.Descriptor{
		Name: "distance", Title: "Distance between representations", Level: measure.LayerLevel, Resampled: "sample",
		Question: "How much does a layer's activation vector change when the input is transformed?",
		Between:  "How far apart are the activation vectors of two models for the same input?",
		Reading:  "0: the activations do not change, or those of two models are the same. The null is the distance between unrelated samples. After a ReLU it can be small, so compare a distance with it. l1 and l2 depend on the scale of the activations: compare them within one layer only. A large distance does not mean that information is lost.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "cosine", Title: "cosine distance", About: "1 minus the cosine of the angle between the two activation vectors: 0 for the same direction, 1 for a right angle.", Range: fixed, Direction: measure.Lower, Null: null, PerSample: true},
			{Name: "relative-l2", Title: "relative l2 distance", About: "The Euclidean distance, divided by the root mean square norm of the two vectors.", Range: fixed, Direction: measure.Lower, Null: null, PerSample: true},
			{Name: "l1", Title: "l1 distance", About: "The sum of absolute differences, in the scale of the activations.", Range: measure.NotNegative, Unit: units, Direction: measure.Lower, Null: null, PerSample: true},
			{Name: "l2", Title: "l2 distance", About: "The Euclidean distance, in the scale of the activations.", Range: measure.NotNegative, Unit: units, Direction: measure.Lower, Null: null, PerSample: true},
		},
	}
}
