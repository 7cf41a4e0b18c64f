package probe

import "github.com/noether-ml/noether/measure"

const (
	samplesAndRuns  = "sample and training run" // the sources of variation that intervals cover
	shuffledTargets = "a probe trained on shuffled targets"
)

// InformativenessDescriptor describes the measure informativeness. Clean samples are not
// transformed.
func InformativenessDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "informativeness", Title: "Informativeness", Level: measure.LayerLevel, Resampled: samplesAndRuns, Chart: "bars", Probes: true,
		Question: "How well can a probe predict a factor from a layer?",
		Reading:  "A probe is trained to predict the factor from the layer's vectors, and tested on other samples. What an MLP probe predicts and a linear probe (slp) does not is encoded, but not linearly. The null is a probe trained on shuffled targets: a score near its null is no better than chance.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "r2", Title: "R²", About: "The fraction of the factor's variance that the probe explains; negative if the probe predicts worse than the mean does.", Range: measure.AtMostOne, Null: shuffledTargets},
			{Name: "rmse", Title: "error of the probe", About: "Root mean squared error, after the factor is divided by the setting scale.", Range: measure.NotNegative, Unit: measure.FactorScale, Null: shuffledTargets},
			{Name: "accuracy", Title: "accuracy of the probe", About: "The fraction of samples whose class the probe predicts.", Range: measure.ZeroToOne, Null: shuffledTargets},
			{Name: "f1", Title: "F1 of the probe", About: "Macro F1: the mean of F1 over the classes.", Range: measure.ZeroToOne, Null: shuffledTargets},
			{Name: "baseline-rmse", Title: "error of predicting the mean", About: "The RMSE of always predicting the mean of the factor over the training samples.", Range: measure.NotNegative},
			{Name: "baseline-accuracy", Title: "accuracy of the most frequent class", About: "The accuracy of always predicting the most frequent class of the training samples.", Range: measure.ZeroToOne},
		},
	}
}

// ParameterEquivarianceDescriptor describes the measure parameter-equivariance.
func ParameterEquivarianceDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "parameter-equivariance", Title: "Parameter equivariance", Level: measure.LayerLevel, Resampled: samplesAndRuns, Chart: "bars", Probes: true,
		Question: "Can a probe predict the parameter of the transformation from the representations before and after it?",
		Reading:  "R² near 1: the two representations determine the parameter. R² near 0: they do not, or not in a way that this probe can use. Errors are fractions of the parameter's range.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "r2", Title: "R²", About: "The fraction of the parameter's variance that the probe explains; negative if the probe predicts worse than the mean does.", Range: measure.AtMostOne, Null: shuffledTargets},
			{Name: "rmse", Title: "error of the probe", About: "As a fraction of the parameter's range. Always predicting the mean gives 0.289 for a uniform range.", Range: measure.NotNegative, Null: shuffledTargets},
			{Name: "accuracy", Title: "accuracy of the probe", About: "The fraction of samples for which the probe predicts the right value.", Range: measure.ZeroToOne, Null: shuffledTargets},
			{Name: "f1", Title: "F1 of the probe", About: "Macro F1: the mean of F1 over the values.", Range: measure.ZeroToOne, Null: shuffledTargets},
			{Name: "baseline-rmse", Title: "error of predicting the mean", About: "The RMSE of always predicting the mean parameter of the training samples.", Range: measure.NotNegative},
			{Name: "baseline-accuracy", Title: "accuracy of the most frequent value", About: "The accuracy of always predicting the most frequent value of the training samples.", Range: measure.ZeroToOne},
		},
	}
}

// RepresentationEquivarianceDescriptor describes the measure representation-equivariance.
func RepresentationEquivarianceDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "representation-equivariance", Title: "Representation equivariance", Level: measure.LayerLevel, Resampled: samplesAndRuns, Chart: "bars", Probes: true,
		Question: "Can a probe predict the transformed representation from the clean one and the parameter?",
		Reading:  "A gain near 1: the representation changes predictably. A gain near 0: the probe does no better than predicting no change. Compare cosine with identity-cosine, the cosine between the clean and the transformed representation.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "gain", Title: "gain over predicting no change", About: "The fraction of the mean squared change that the probe explains; negative if it does worse than predicting no change.", Range: measure.AtMostOne, Direction: measure.Higher, Null: shuffledTargets},
			{Name: "cosine", Title: "cosine of the prediction", About: "Between the predicted and the transformed representation.", Range: measure.MinusOneToOne, Direction: measure.Higher, Null: shuffledTargets},
			{Name: "mse", Title: "error of the prediction", About: "Mean squared error over components; representations are scaled to unit length.", Range: measure.NotNegative, Direction: measure.Lower, Null: shuffledTargets},
			{Name: "identity-cosine", Title: "cosine of predicting no change", About: "Between the clean and the transformed representation.", Range: measure.MinusOneToOne},
			{Name: "identity-mse", Title: "error of predicting no change", About: "The mean squared error of predicting the clean representation.", Range: measure.NotNegative},
			{Name: "accuracy", Title: "accuracy of the codes", About: "Of discrete codes: the fraction that the probe predicts.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: shuffledTargets},
			{Name: "identity-accuracy", Title: "codes that do not change", About: "The fraction of codes that the transformation leaves as they are.", Range: measure.ZeroToOne},
			{Name: "baseline-accuracy", Title: "accuracy of the most frequent codes", About: "The accuracy of always predicting the most frequent code of each position in the training samples.", Range: measure.ZeroToOne},
		},
	}
}

// InvarianceDescriptor describes the measure invariance.
func InvarianceDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "invariance", Title: "Invariance", Level: measure.LayerLevel, Resampled: "sample", Chart: "parameter",
		Question: "Does a layer's pooled representation stay the same, for each value of the parameter?",
		Reading:  "A cosine of 1: the direction of the vector does not change. The null pairs unrelated samples. After a ReLU its cosine is far from 0, so compare a cosine with its null.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "cosine", Title: "cosine", About: "Between the clean and the transformed vector; the mean over samples.", Range: measure.MinusOneToOne, Direction: measure.Higher, Null: "shuffled pairs"},
			{Name: "l2", Title: "distance", About: "Euclidean distance between the clean and the transformed vector, in the scale of the activations.", Range: measure.NotNegative, Unit: measure.ActivationScale, Direction: measure.Lower, Null: "shuffled pairs"},
		},
	}
}

// RetrievalDescriptor describes the measure retrieval.
func RetrievalDescriptor() measure.Descriptor {
	const null = "a random order"
	return measure.Descriptor{
		Name: "retrieval", Title: "Retrieval", Level: measure.LayerLevel, Resampled: "sample", Chart: "parameter",
		Question: "Among the pooled vectors of all samples, is the one nearest to that of the transformed sample its own?",
		Reading:  "Recall 1: every transformed sample finds its original first. The scores depend on the number of samples: compare scores of equal n only, and with the null.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "recall-1", Title: "recall at 1", About: "The fraction of transformed samples whose nearest clean vector, by cosine, is their own.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: "recall-10", Title: "recall at 10", About: "The fraction of transformed samples whose own clean vector is among the ten nearest.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: "mean-reciprocal-rank", Title: "mean reciprocal rank", About: "The mean of 1 over the place of the own clean vector in the order of cosines.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
		},
	}
}

// ConfoundingDescriptor describes the measure confounding.
func ConfoundingDescriptor() measure.Descriptor {
	const frequent = "the most frequent value"
	return measure.Descriptor{
		Name: "confounding", Title: "Confounding", Level: measure.LayerLevel, Resampled: "sample", Chart: "depth",
		Question: "Does a layer know a factor of the samples, such as their site, better than their class?",
		Reading:  "The robustness index is above 0.5 if neighbours share the class rather than the factor, and below it if they share the factor rather than the class. Compare it with its null, which the frequencies of classes and values alone give.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "robustness-index", Title: "robustness index", About: "Of the nearest neighbours that share either the class or the factor with a sample, the fraction that shares the class.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: "all samples as neighbours"},
			{Name: "knn-class", Title: "class by neighbours", About: "The fraction of samples whose class is the most frequent one of their nearest neighbours.", Range: measure.ZeroToOne, Null: frequent},
			{Name: "knn-factor", Title: "factor by neighbours", About: "The fraction of samples whose value of the factor is the most frequent one of their nearest neighbours.", Range: measure.ZeroToOne, Direction: measure.Lower, Null: frequent},
			{Name: "probe-class", Title: "class by a linear probe", About: "The fraction of samples whose class a ridge regression on all others finds.", Range: measure.ZeroToOne, Null: frequent},
			{Name: "probe-factor", Title: "factor by a linear probe", About: "The fraction of samples whose value of the factor a ridge regression on all others finds.", Range: measure.ZeroToOne, Direction: measure.Lower, Null: frequent},
		},
	}
}

// LiDARDescriptor describes the measure lidar.
func LiDARDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "lidar", Title: "LiDAR", Level: measure.LayerLevel, Resampled: "sample", Chart: "depth",
		Question: "In how many directions does a layer tell samples apart despite the transformation?",
		Reading:  "The effective rank of the linear discriminants of samples from transformed versions of them. It is at most the number of variables and of samples; directions that vary within the versions of a sample count little, unlike in the effective rank of geometry.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "lidar", Title: "LiDAR", About: "Exponential of the entropy of the eigenvalues of the covariance between samples, whitened by that within the versions of a sample.", Range: measure.NotNegative, Direction: measure.Higher},
		},
	}
}

// CodesDescriptor describes the measure disentanglement-metrics.
func CodesDescriptor() measure.Descriptor {
	const null = "vectors of other samples"
	return measure.Descriptor{
		Name: "disentanglement-metrics", Title: "Disentanglement of factors", Level: measure.LayerLevel, Resampled: "sample", Chart: "depth",
		Question: "Does each component of a layer's vector hold one factor, and does each factor lie in one component?",
		Reading:  "1: every component belongs to one factor (disentanglement, InfoM), or every factor to one component (completeness, MIG, SAP, InfoC). Rotations of the vector change all but the informativeness (error, InfoE). Compare with the null, which is above 0 with few samples.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "dci-disentanglement", Title: "DCI disentanglement", About: "1 minus the entropy of the factors that a component is important for, weighted by importance.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: "dci-completeness", Title: "DCI completeness", About: "1 minus the entropy of the components that are important for a factor, the mean over factors.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: "dci-error", Title: "DCI error", About: "The error of lasso regressions of the factors, as a fraction of their standard deviation: DCI's informativeness.", Range: measure.NotNegative, Direction: measure.Lower, Null: null},
			{Name: "mig", Title: "mutual information gap", About: "The difference between the two components that know most of a factor, as a fraction of its entropy.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: "sap", Title: "SAP", About: "The difference between the two components that predict a factor best.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: "infom", Title: "InfoM", About: "Modularity: how much of a component's information is about one factor.", Range: measure.Range{Low: -1, High: 1}, Direction: measure.Higher, Null: null},
			{Name: "infoc", Title: "InfoC", About: "Compactness: how much of a factor's information is in one component.", Range: measure.Range{Low: -1, High: 1}, Direction: measure.Higher, Null: null},
			{Name: "infoe", Title: "InfoE", About: "Explicitness: how much of the factors a linear model predicts, on the same samples.", Range: measure.AtMostOne, Direction: measure.Higher, Null: null},
		},
	}
}

// DisentanglementDescriptor describes the measure disentanglement.
func DisentanglementDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "disentanglement", Title: "Disentanglement", Level: measure.LayerLevel, Resampled: samplesAndRuns, Chart: "heat", Probes: true,
		Question: "Does a probe for one factor stay accurate when the transformation changes another factor?",
		Reading:  "0: the probe predicts the factor as well as before. The parameter is the midpoint of a quarter of the transformation's range, or a value of a list. An error is expected for a factor that the transformation itself changes. If the probe did not predict the factor before, the change means nothing.",
		Statistics: []measure.StatisticDescriptor{
			{Name: "rmse-change", Title: "change of the probe's error", About: "RMSE on transformed samples minus RMSE on the same clean samples.", Range: measure.AnyNumber, Null: shuffledTargets},
			{Name: "accuracy-change", Title: "loss of the probe's accuracy", About: "Accuracy on clean samples minus accuracy on the same samples transformed: positive for a loss.", Range: measure.MinusOneToOne, Null: shuffledTargets},
		},
	}
}
