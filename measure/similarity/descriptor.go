package similarity

import (
	"math"

	"github.com/noether-ml/noether/measure"
)

// Descriptor describes the measure similarity.
func Descriptor() measure.Descriptor {
	const null = "shuffled pairs"
	return measure.Descriptor{
		Name: "similarity", Title: "Similarity of representations", Level: measure.PairLevel, Resampled: "sample",
		Question: "How similar are the representations of the same inputs by two layers, of one model or two, or by one layer on x and on T(x)?",
		Reading:  "1: the representations are equal up to maps that the statistic ignores (rotation and scale for CKA, any invertible linear map for CCA). The null pairs each sample with another one: a similarity near its null is no better than chance. A high similarity on the data does not mean that two models have the same invariances.",
		Statistics: []measure.StatisticDescriptor{
			{Name: LinearCKA, Title: "linear CKA", About: "The cosine between the two centred Gram matrices.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: DebiasedCKA, Title: "debiased CKA", About: "Linear CKA from unbiased estimates: about 0 for independent representations.", Range: measure.MinusOneToOne, Direction: measure.Higher, Null: null},
			{Name: MinibatchCKA, Title: "minibatch CKA", About: "Debiased CKA from the averages over minibatches.", Range: measure.MinusOneToOne, Direction: measure.Higher, Null: null},
			{Name: RBFCKA, Title: "RBF CKA", About: "CKA of Gram matrices of a Gaussian kernel, which depends mainly on near neighbours.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: CCA, Title: "mean canonical correlation", About: "Mean of the canonical correlations. It is invariant to invertible linear maps.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: SVCCA, Title: "SVCCA", About: "Mean canonical correlation of the principal subspaces that hold most of the variance.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: PWCCA, Title: "PWCCA", About: "Mean canonical correlation, weighted by the contribution of each direction to the first representation.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null, Directional: true},
			{Name: Procrustes, Title: "Procrustes similarity", About: "The largest cosine between one representation and a rotation of the other.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: LinearRegression, Title: "linear regression", About: "The fraction of the first representation's variance that a linear map of the second explains (R²).", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null, Directional: true},
			{Name: RSA, Title: "representational similarity", About: "Rank correlation of the dissimilarities of all pairs of samples.", Range: measure.MinusOneToOne, Direction: measure.Higher, Null: null},
			{Name: MutualKNN, Title: "mutual nearest neighbours", About: "The mean fraction of a sample's nearest neighbours that the two representations have in common.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},

			{Name: RSMNormDifference, Title: "RSM norm difference", About: "Norm of the difference of the two matrices of distances between samples; it depends on the scale of the activations and on the number of samples.", Range: measure.NotNegative, Unit: measure.ActivationScale, Direction: measure.Lower, Null: null},
			{Name: DistanceCorrelation, Title: "distance correlation", About: "Correlation of the distances between samples, after the means of rows and columns are subtracted: 0 in the limit only if the two are independent.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: Jaccard, Title: "Jaccard similarity of neighbours", About: "The mean of the number of common neighbours of a sample divided by that of neighbours in either representation.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: SecondOrderCosine, Title: "second-order cosine similarity", About: "The mean cosine of a sample's dissimilarities to its neighbours in either representation.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: RankSimilarity, Title: "rank similarity of neighbours", About: "How well the ranks of a sample's common neighbours agree, with more weight on near ones.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: CKNNA, Title: "CKNNA", About: "CKA of the inner products of samples that are neighbours in both representations.", Range: measure.MinusOneToOne, Direction: measure.Higher, Null: null},
			{Name: ShapeMetric, Title: "angular shape metric", About: "The angle, in radians, between the two after the best rotation and, with alpha below 1, after partial whitening.", Range: measure.Range{High: math.Pi / 2}, Unit: "radians", Direction: measure.Lower, Null: null},
			{Name: ProcrustesDistance, Title: "Procrustes distance", About: "The distance after the best rotation, with the sizes kept; it depends on the scale of the activations and on the number of samples.", Range: measure.NotNegative, Unit: measure.ActivationScale, Direction: measure.Lower, Null: null},
			{Name: AlignedCosine, Title: "aligned cosine similarity", About: "The mean cosine of a sample in both representations after the best rotation.", Range: measure.MinusOneToOne, Direction: measure.Higher, Null: null},
			{Name: PermutationProcrustes, Title: "permutation Procrustes distance", About: "The distance after the best permutation of the variables; it depends on the scale of the activations and on the number of samples.", Range: measure.NotNegative, Unit: measure.ActivationScale, Direction: measure.Lower, Null: null},
			{Name: HardCorrelationMatch, Title: "hard correlation match", About: "The mean correlation of variables that are matched one to one.", Range: measure.MinusOneToOne, Direction: measure.Higher, Null: null},
			{Name: SoftCorrelationMatch, Title: "soft correlation match", About: "The mean over variables of the largest correlation with a variable of the other representation.", Range: measure.MinusOneToOne, Direction: measure.Higher, Null: null},
			{Name: SoftMatching, Title: "soft matching distance", About: "The square root of the least cost of transport between the variables of both; it depends on the scale of the activations and on the number of samples.", Range: measure.NotNegative, Unit: measure.ActivationScale, Direction: measure.Lower, Null: null},
			{Name: RidgePredictivity, Title: "ridge predictivity", About: "R² of the first representation predicted from the second by ridge regression, on samples that the fit leaves out.", Range: measure.AtMostOne, Direction: measure.Higher, Null: null, Directional: true},
			{Name: PLSPredictivity, Title: "PLS predictivity", About: "R² of the first representation predicted from the second by partial least squares, on samples that the fit leaves out.", Range: measure.AtMostOne, Direction: measure.Higher, Null: null, Directional: true},
			{Name: GULP, Title: "GULP distance", About: "How far predictions of ridge regressions on the two representations can differ.", Range: measure.NotNegative, Direction: measure.Lower, Null: null},
			{Name: EigenspaceOverlap, Title: "eigenspace overlap", About: "The overlap of the spans of both, relative to the larger number of variables.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: MagnitudeDifference, Title: "difference in magnitude", About: "The difference of the lengths of the mean representations.", Range: measure.NotNegative, Unit: measure.ActivationScale, Direction: measure.Lower},
			{Name: ConcentricityDifference, Title: "difference in concentricity", About: "The difference of the mean cosines of a sample and the mean representation.", Range: measure.Range{High: 2}, Direction: measure.Lower},
			{Name: UniformityDifference, Title: "difference in uniformity", About: "The difference of the logarithms of the mean of exp(-2 d²) over pairs of samples; it depends on the scale of the activations.", Range: measure.NotNegative, Unit: measure.ActivationScale, Direction: measure.Lower},
			{Name: IntrinsicDimensionDifference, Title: "difference in intrinsic dimension", About: "The difference of the intrinsic dimensions by TwoNN.", Range: measure.NotNegative, Direction: measure.Lower},
			{Name: EffectiveRankDifference, Title: "difference in effective rank", About: "The difference of the effective ranks (RankMe).", Range: measure.NotNegative, Direction: measure.Lower},
		},
	}
}

// GeometryDescriptor describes the measure geometry; the variant moved is that on T(x).
func GeometryDescriptor() measure.Descriptor {
	return measure.Descriptor{
		Name: "geometry", Title: "Geometry of a representation", Level: measure.LayerLevel, Resampled: "sample",
		Question: "How are the representations of the samples by one layer distributed: how far, how spread, in how many dimensions?",
		Reading:  "Each statistic describes one layer on its own, on x and, with the variant moved, on T(x). A small effective rank or intrinsic dimension means that the layer uses few directions; a concentricity near 1 that all samples point the same way. Magnitude and uniformity depend on the scale of the activations: compare them within one layer.",
		Statistics: []measure.StatisticDescriptor{
			{Name: Magnitude, Title: "magnitude", About: "The length of the mean representation.", Range: measure.NotNegative, Unit: measure.ActivationScale},
			{Name: Concentricity, Title: "concentricity", About: "The mean cosine of a sample and the mean representation.", Range: measure.MinusOneToOne},
			{Name: Uniformity, Title: "uniformity", About: "The logarithm of the mean of exp(-2 d²) over all pairs of samples, with distances d: lower where samples are spread.", Range: measure.Range{Low: math.Inf(-1), High: 0}, Unit: measure.ActivationScale},
			{Name: IntrinsicDimension, Title: "intrinsic dimension", About: "The dimension of the set of samples by the ratio of the distances to the second and the first neighbour (TwoNN).", Range: measure.NotNegative},
			{Name: EffectiveRank, Title: "effective rank", About: "The exponential of the entropy of the singular values (RankMe).", Range: measure.NotNegative},
			{Name: RankMe, Title: "RankMe", About: "The effective rank with the 1e-7 that Garrido et al. add to each fraction, for numbers that are comparable with published ones.", Range: measure.NotNegative},
			{Name: AlphaReQ, Title: "decay of the spectrum", About: "The exponent α of the power law j^-α that the 6th to the 100th eigenvalue of the covariance follow (α-ReQ): about 1 in good representations, larger where few directions dominate.", Range: measure.NotNegative},
		},
	}
}
