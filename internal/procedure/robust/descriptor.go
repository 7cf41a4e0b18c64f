package robust

import "github.com/noether-ml/noether/measure"

// Descriptor describes the measure.
func Descriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "robust-accuracy", Title: "Robust accuracy", Level: measure.ModelLevel, Resampled: "sample",
		Question: "Is the prediction still correct after the worst small change of the image?",
		Reading:  "An attack, projected gradient descent or AutoAttack, searches a ball around the image for an image that is misclassified. The score is an upper bound: a stronger attack may find more such images.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "robust", Title: "robust accuracy", About: "The fraction of samples for which the attack finds no misclassified image in the ball.", Range: measure.ZeroToOne, Direction: measure.Higher},
			{Name: "clean", Title: "accuracy", About: "The fraction of samples that are classified correctly without an attack.", Range: measure.ZeroToOne, Untransformed: true},
			{Name: "broken", Title: "fraction broken by an attack", About: "Of AutoAttack: the fraction of samples for which an attack finds a misclassified image and the attacks before it do not. The variant is the attack.", Range: measure.ZeroToOne},
		},
	}
}
