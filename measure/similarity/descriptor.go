package similarity

import "github.com/noether-ml/noether/measure"

// Descriptor describes the measure.
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
		},
	}
}
