package firing

import (
	"math"

	"github.com/noether-ml/noether/measure"
)

// Descriptor describes the measure.
func Descriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "firing", Title: "Firing-rate invariance", Level: measure.LayerLevel, Resampled: "channel",
		Question: "Does a single unit keep firing for its feature while the input is transformed?",
		Reading:  "A unit fires for about one input in a hundred. Invariance is how much more often it fires on the trajectories around the inputs that drive it most: 1 is chance, and the reciprocal of the global rate, about 100, is the most. The null follows trajectories around inputs drawn at random.",
		Statistics: []measure.StatisticDescriptor{
			{Name: statInvariance, Title: "firing-rate invariance", About: "Local over global firing rate, the mean over the best share of a layer's units.", Range: measure.NotNegative, Direction: measure.Higher, Null: "trajectories around inputs drawn at random", PerUnit: true},
			{Name: statLocal, Title: "local firing rate", About: "The share of the trajectories around their strongest inputs on which these units fire.", Range: measure.ZeroToOne, PerUnit: true},
			{Name: statGlobal, Title: "global firing rate", About: "The share of all inputs at which these units fire.", Range: measure.ZeroToOne, PerUnit: true},
			{Name: statSelective, Title: "share of selective units", About: "Of units that do not fire at every input: that are neither constant nor too rarely above their smallest value.", Range: measure.ZeroToOne},
			{Name: statNormalised, Title: "normalised variance", About: "Deviation over transformations, relative to that over samples, the mean over units: 0 is invariant.", Range: measure.NotNegative, Direction: measure.Lower, PerUnit: true},
			{Name: statSame, Title: "same-equivariance", About: "The normalised variance after the inverse transformation of the feature maps: 0 where they transform like the input.", Range: measure.NotNegative, Direction: measure.Lower, PerUnit: true},
			{Name: statNormal, Title: "invariance by a normal threshold", About: "Firing on all trajectories over firing on all inputs, thresholds by mean and deviation.", Range: measure.NotNegative, Direction: measure.Higher, PerUnit: true},
			{Name: statInformation, Title: "information about the class", About: "Between firing and class, in nats, the mean over the best share of units.", Range: measure.Range{High: math.Ln2}, Unit: "nats", Null: "shuffled labels", PerUnit: true},
			{Name: statTransformational, Title: "transformational variance", About: "Deviation over transformations, in the units of the layer.", Range: measure.NotNegative, Unit: "units of the layer", PerUnit: true},
			{Name: statSample, Title: "sample variance", About: "Deviation over samples, in the units of the layer.", Range: measure.NotNegative, Unit: "units of the layer", PerUnit: true},
		},
	}
}
