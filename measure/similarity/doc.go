// Package similarity measures how alike two representations of the same inputs are: two layers, two models, two checkpoints, or one
// layer on x and on T(x).
//
// Write X (n x p) and Y (n x q) for the activations of the two on the same n samples, with the mean of each column taken out, and
//
//	Sxx = Xᵀ X,  Syy = Yᵀ Y,  Sxy = Xᵀ Y     (p x p, q x q, p x q)
//	K = X Xᵀ,    L = Y Yᵀ                    (n x n)
//
// Norms |.| are Frobenius norms. The statistics:
//
//	linear-cka         |Sxy|^2 / (|Sxx| |Syy|) = <K, L> / (|K| |L|)            Kornblith et al. 2019
//	debiased-cka       the same with unbiased estimates of HSIC                Song et al. 2012; Nguyen et al. 2021, equation 3
//	minibatch-cka      the same, summed over minibatches                       Nguyen et al. 2021, equation 2
//	rbf-cka            <HKH, HLH> / (|HKH| |HLH|), K = exp(-d^2 / (2 s^2))      Kornblith et al. 2019
//	cca                mean of the canonical correlations rho_i                Hotelling 1936
//	svcca              the same of the components that hold 99 % of variance   Raghu et al. 2017
//	pwcca              sum a_i rho_i / sum a_i, a_i = sum_j |h_i.x_j|          Morcos et al. 2018
//	procrustes         |Sxy|_* / (|X| |Y|), |.|_* the sum of singular values   Williams et al. 2021
//	linear-regression  |Q_yᵀ X|^2 / |X|^2: R^2 of X from Y                     Kornblith et al. 2019
//	rsa                Spearman's correlation of the cosine dissimilarities    Kriegeskorte et al. 2008
//	mutual-knn         share of k nearest neighbours in common                 Huh et al. 2024
//
// pwcca and linear-regression depend on which of the two is X; the others do not. All are at most 1, which X has with itself. All
// but the canonical correlations and linear-regression take X as it lies in space, up to rotation, reflection and scale;
// canonical correlations and linear-regression (in Y) ignore any invertible linear map. Where both representations are constant
// the similarity is 1, where one is, 0.
//
// # How they are computed
//
// From moments of size p x p, streamed, or from n x n Gram matrices where those are smaller. CKA needs no more than norms of them.
// Canonical correlations whiten by the Cholesky factor of the moments where their variables are well conditioned; else by
// orthonormal combinations that are found from the observations themselves in some rounds, so that nearly dependent variables cost
// no digits. Directions below the rounding of float64 are left out. rbf-cka, rsa and mutual-knn need n x n values; beyond
// Settings.Samples samples they take a random part of them and say so in a warning.
//
// # Intervals and nulls
//
// Every interval is a delete-a-group jackknife over up to twenty random groups of samples (resample.Jackknife). What a replicate is:
//
//   - linear-cka, debiased-cka, minibatch-cka, mutual-knn: the statistic without the group, exactly, from the group's own moments.
//   - rbf-cka, rsa: the same, with the bandwidth and the ranks of all samples.
//   - canonical correlations, procrustes and linear-regression: the statistic without the group to first order in the moments that
//     go, so that one decomposition serves all replicates. The subspaces of svcca stay, but what its
//     number of components jumps by is added where there are more samples than variables.
//
// The null is the mean of the statistic over shuffles of the pairs. It has a closed form for most: tr Sxx tr Syy / ((n-1) |Sxx| |Syy|) for
// linear-cka (and with traces of HKH for rbf-cka), 0 for debiased-cka, minibatch-cka and rsa, rank(Y) / (n-1) for linear-regression,
// k / (n-1) for mutual-knn. For canonical correlations and procrustes it is the mean over up to ten drawn shuffles. Read
// a value against it: with p and q near n, linear-cka and canonical correlations are near 1 for any two representations.
package similarity
