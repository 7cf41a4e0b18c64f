package probe

import "github.com/noether-ml/noether/measure"

const (
	samplesAndTrainings = "sample and training run" // what intervals resample
	shuffledTargets     = "a probe trained on shuffled targets"
)

// InformativenessDescriptor describes the measure informativeness.
func InformativenessDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "informativeness", Title: "Informativeness", Level: measure.LayerLevel, Resampled: samplesAndTrainings, Chart: "bars", Probes: true,
		Question: "What can a small probe read of a factor from a layer?",
		Reading:  "A probe is trained to predict the factor from the layer's vectors, and judged on samples that it has not seen. What an mlp reads and an slp does not is there, and not linearly. The null is a probe trained on shuffled targets: a score at its null is chance.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "r2", Title: "R²", About: "The share of the factor's variance that the probe predicts; below 0 it does worse than the mean.", Range: measure.AtMostOne, Null: shuffledTargets},
			{Name: "rmse", Title: "error of the probe", About: "Root of the mean squared error, in units of the factor divided by its scale.", Range: measure.NotNegative, Null: shuffledTargets},
			{Name: "accuracy", Title: "accuracy of the probe", About: "The share of samples whose class the probe predicts.", Range: measure.ZeroToOne, Null: shuffledTargets},
			{Name: "f1", Title: "F1 of the probe", About: "The mean over classes.", Range: measure.ZeroToOne, Null: shuffledTargets},
			{Name: "baseline-rmse", Title: "error of the mean", About: "What predicting the mean of the training samples comes to.", Range: measure.NotNegative},
			{Name: "baseline-accuracy", Title: "accuracy of the most frequent class", About: "What naming the most frequent class of the training samples comes to.", Range: measure.ZeroToOne},
		},
	}
}

// ParameterEquivarianceDescriptor describes the measure parameter-equivariance.
func ParameterEquivarianceDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "parameter-equivariance", Title: "Parameter equivariance", Level: measure.LayerLevel, Resampled: samplesAndTrainings, Chart: "bars", Probes: true,
		Question: "Can a probe tell from the representations before and after what the transformation did?",
		Reading:  "R² near 1: the layer holds what the transformation did. R² near 0: it does not show, or not to a probe of this size. Errors are in shares of the parameter's range.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "r2", Title: "R²", About: "The share of the parameter's variance that the probe predicts.", Range: measure.AtMostOne, Null: shuffledTargets},
			{Name: "rmse", Title: "error of the probe", About: "In shares of the parameter's range; the mean predicts to 0.289.", Range: measure.NotNegative, Null: shuffledTargets},
			{Name: "accuracy", Title: "accuracy of the probe", About: "The share of samples for which it names the right value.", Range: measure.ZeroToOne, Null: shuffledTargets},
			{Name: "f1", Title: "F1 of the probe", About: "The mean over values.", Range: measure.ZeroToOne, Null: shuffledTargets},
			{Name: "baseline-rmse", Title: "error of the mean", About: "What predicting the mean parameter comes to.", Range: measure.NotNegative},
			{Name: "baseline-accuracy", Title: "accuracy of the most frequent value", About: "What naming the most frequent value comes to.", Range: measure.ZeroToOne},
		},
	}
}

// RepresentationEquivarianceDescriptor describes the measure representation-equivariance.
func RepresentationEquivarianceDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "representation-equivariance", Title: "Representation equivariance", Level: measure.LayerLevel, Resampled: samplesAndTrainings, Chart: "bars", Probes: true,
		Question: "Can a probe predict the transformed representation from the clean one and the parameter?",
		Reading:  "A gain near 1: the layer moves predictably. A gain near 0: predicting that nothing moves is as good. Read the cosine against that of the clean representation itself.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "gain", Title: "gain over the clean representation", About: "The share of the squared move that the probe predicts; below 0 it does worse than predicting no move.", Range: measure.AtMostOne, Direction: measure.Higher, Null: shuffledTargets},
			{Name: "cosine", Title: "cosine of the prediction", About: "Between the predicted and the transformed representation.", Range: measure.MinusOneToOne, Direction: measure.Higher, Null: shuffledTargets},
			{Name: "mse", Title: "error of the prediction", About: "Mean squared error over the numbers of a vector of unit length.", Range: measure.NotNegative, Direction: measure.Lower, Null: shuffledTargets},
			{Name: "identity-cosine", Title: "cosine of the clean representation", About: "Between the clean and the transformed representation.", Range: measure.MinusOneToOne},
			{Name: "identity-mse", Title: "error of the clean representation", About: "What predicting that nothing moves comes to.", Range: measure.NotNegative},
		},
	}
}

// InvarianceDescriptor describes the measure invariance.
func InvarianceDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "invariance", Title: "Invariance", Level: measure.LayerLevel, Resampled: "sample", Chart: "parameter",
		Question: "Does a layer's pooled vector stay where it is, for each value of the parameter?",
		Reading:  "A cosine of 1: the vector keeps its direction. The null pairs unrelated samples: after a ReLU its cosine is far from 0, so read a cosine against it.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "cosine", Title: "cosine", About: "Between the clean and the transformed vector, the mean over samples.", Range: measure.MinusOneToOne, Direction: measure.Higher, Null: "shuffled pairs"},
			{Name: "l2", Title: "distance", About: "Between the clean and the transformed vector, in the units of the layer.", Range: measure.NotNegative, Unit: "units of the layer", Direction: measure.Lower, Null: "shuffled pairs"},
		},
	}
}

// DisentanglementDescriptor describes the measure disentanglement.
func DisentanglementDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "disentanglement", Title: "Disentanglement", Level: measure.LayerLevel, Resampled: samplesAndTrainings, Chart: "heat", Probes: true,
		Question: "Does a probe for one factor still read it when the transformation changes another?",
		Reading:  "0: the probe reads the factor as well as before. The parameter names the middle of a quarter of the transformation's range. A factor that the transformation itself changes is disturbed rightly, and one that was never read cannot be disturbed.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "rmse-change", Title: "change of the probe's error", About: "Error on transformed samples minus error on the same samples as they are.", Range: measure.AnyNumber, Null: shuffledTargets},
			{Name: "accuracy-change", Title: "loss of the probe's accuracy", About: "Accuracy on samples as they are minus accuracy on the same samples transformed.", Range: measure.MinusOneToOne, Null: shuffledTargets},
		},
	}
}
