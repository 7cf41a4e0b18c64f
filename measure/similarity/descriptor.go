package similarity

import "github.com/noether-ml/noether/measure"

// Descriptor describes the measure.
func Descriptor() measure.Descriptor {
	const null = "shuffled pairs"
	return measure.Descriptor{
		Name: "similarity", Title: "Similarity of representations", Level: measure.PairLevel, Resampled: "sample",
		Question: "Do two layers represent the same inputs alike: two of different models, two of one model, or one on x and on T(x)?",
		Reading:  "1: one representation is the other, up to what the statistic disregards (rotation and scale for CKA, any invertible linear map for CCA). The null pairs each sample with another one: a similarity at its null is chance. A high similarity on the data does not say that two models are invariant to the same things.",
		Statistics: []measure.StatisticDescriptor{
			{Name: LinearCKA, Title: "linear CKA", About: "The cosine between the two centred Gram matrices.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: DebiasedCKA, Title: "debiased CKA", About: "Linear CKA from unbiased estimates: 0 on average for representations that have nothing in common.", Range: measure.MinusOneToOne, Direction: measure.Higher, Null: null},
			{Name: MinibatchCKA, Title: "minibatch CKA", About: "Debiased CKA from the averages over minibatches.", Range: measure.MinusOneToOne, Direction: measure.Higher, Null: null},
			{Name: RBFCKA, Title: "RBF CKA", About: "CKA of Gram matrices of a Gaussian kernel, which looks at near neighbours.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: CCA, Title: "mean canonical correlation", About: "Disregards every invertible linear map.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: SVCCA, Title: "SVCCA", About: "Mean canonical correlation of the principal subspaces that hold most of the variance.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: PWCCA, Title: "PWCCA", About: "Mean canonical correlation, weighted by how much of the first representation each direction accounts for.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null, Directional: true},
			{Name: Procrustes, Title: "Procrustes similarity", About: "How well the best rotation and scaling of one representation fits the other.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
			{Name: LinearRegression, Title: "linear regression", About: "The share of the first representation's variance that a linear map of the second explains.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null, Directional: true},
			{Name: RSA, Title: "representational similarity", About: "Rank correlation of the dissimilarities of all pairs of samples.", Range: measure.MinusOneToOne, Direction: measure.Higher, Null: null},
			{Name: MutualKNN, Title: "mutual nearest neighbours", About: "The share of nearest neighbours that samples have in common.", Range: measure.ZeroToOne, Direction: measure.Higher, Null: null},
		},
	}
}
