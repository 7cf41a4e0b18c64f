package firing

import (
	"fmt"
	"math"

	"github.com/noether-ml/noether/measure"
)

// Descriptor describes the measure with its default settings. Resampled is what the confidence
// intervals take as random. PerUnit: the statistic has a value for each unit. Constants such as
// statInvariance are the names of statistics.
func Descriptor() measure.Descriptor { return descriptor(Defaults().Rate) }

func descriptor(rate float64) measure.Descriptor {
	return measure.Descriptor{
		Name: "firing", Title: "Firing-rate invariance", Level: measure.LayerLevel, Resampled: "channel",
		Question: "Does a single unit still fire for its feature when the input is transformed?",
		Reading:  fmt.Sprintf("A unit fires for %.4g %% of the inputs, its global rate. Invariance is the ratio of the firing rate on transformed versions of the inputs that activate the unit most to this rate. 1 is chance, and the largest value is the reciprocal of the global rate, %.4g. Units with tied values fire more often. The null uses random inputs in place of the strongest ones.", 100*rate, 1/rate),
		Statistics: []measure.StatisticDescriptor{
			{Name: statInvariance, Title: "firing-rate invariance", About: "Ratio of local to global firing rate; the mean over the best units of a layer (the fraction is the setting top).", Range: measure.NotNegative, Direction: measure.Higher, Null: "trajectories around inputs drawn at random", PerUnit: true},
			{Name: statLocal, Title: "local firing rate", About: "The fraction of transformed versions of their strongest inputs at which these units fire.", Range: measure.ZeroToOne, PerUnit: true},
			{Name: statGlobal, Title: "global firing rate", About: "The fraction of all inputs at which these units fire.", Range: measure.ZeroToOne, PerUnit: true},
			{Name: statSelective, Title: "fraction of selective units", About: "The fraction of units that do not fire at every input. A unit fires at every input if it is constant, or exceeds its smallest value too rarely.", Range: measure.ZeroToOne},
			{Name: statNormalised, Title: "normalised variance", About: "Standard deviation over transformations divided by that over samples; the mean over units. 0 is invariant.", Range: measure.NotNegative, Direction: measure.Lower, PerUnit: true},
			{Name: statSame, Title: "same-equivariance", About: "The normalised variance after the inverse transformation of the feature maps: 0 if they transform like the input.", Range: measure.NotNegative, Direction: measure.Lower, PerUnit: true},
			{Name: statNormal, Title: "invariance by a normal threshold", About: "Ratio of the firing rate on the trajectories of all inputs to that on the inputs, with thresholds from mean and standard deviation.", Range: measure.NotNegative, Direction: measure.Higher, PerUnit: true},
			{Name: statInformation, Title: "information about the class", About: "Mutual information between firing and class, in nats; the mean over the best units of a layer.", Range: measure.Range{High: math.Ln2}, Unit: "nats", Null: "shuffled labels", PerUnit: true},
			{Name: statTransformational, Title: "transformational variance", About: "Standard deviation over transformations, in the scale of the activations.", Range: measure.NotNegative, Unit: measure.ActivationScale, PerUnit: true},
			{Name: statSample, Title: "sample variance", About: "Standard deviation over samples, in the scale of the activations.", Range: measure.NotNegative, Unit: measure.ActivationScale, PerUnit: true},
		},
	}
}
