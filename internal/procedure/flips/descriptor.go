package flips

import (
	"github.com/noether-ml/noether/measure"
)

// Descriptor describes the measure.
func Descriptor() measure.Descriptor {
	const null = "frames of another sequence"
	distances := measure.Range{High: 15}
	return measure.Descriptor{
		Name: "flip-rate", Title: "Flip rate", Level: measure.ModelLevel, Resampled: "sequence",
		Question: "How often does the prediction change from frame to frame of a sequence?",
		Reading:  "0: the prediction is the same for all frames of each sequence, such as a photograph that turns slowly. The null compares frames of different sequences.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "flip-rate", Title: "flip rate", About: "The fraction of frames whose predicted class is not that of the frame before.", Range: measure.ZeroToOne, Direction: measure.Lower, Null: null, Untransformed: true},
			{Name: "top-5-distance", Title: "top-5 distance", About: "How far the five classes that are ranked first in a frame move in the next one, where all places beyond the fifth are one; 0 to 15.", Range: distances, Direction: measure.Lower, Null: null, Untransformed: true},
			{Name: "flip-rate-first", Title: "flip rate against the first frame", About: "The fraction of frames whose predicted class is not that of the first frame, for sequences of independent draws of noise.", Range: measure.ZeroToOne, Direction: measure.Lower, Null: null, Untransformed: true},
			{Name: "top-5-distance-first", Title: "top-5 distance to the first frame", About: "The top-5 distance of each frame to the first one.", Range: distances, Direction: measure.Lower, Null: null, Untransformed: true},
		},
	}
}
