// Package similarity measures the similarity of two representations of the same inputs. These may
// be of two layers, two models, two checkpoints, or one layer on inputs x and on transformed ones,
// T(x).
//
// Let X (n x p) and Y (n x q) be the activations of both on the same n samples, with the mean of
// each column subtracted, and
//
//	Sxx = Xᵀ X,  Syy = Yᵀ Y,  Sxy = Xᵀ Y     (p x p, q x q, p x q)
//	K = X Xᵀ,    L = Y Yᵀ                    (n x n)
//
// Norms |.| are Frobenius norms, and H = I - 1 1ᵀ / n subtracts means. HSIC, the Hilbert-Schmidt
// independence criterion, is <HKH, HLH> up to a factor. The statistics:
//
//	linear-cka         |Sxy|^2 / (|Sxx| |Syy|) = <K, L> / (|K| |L|)            Kornblith et al. 2019
//	debiased-cka       the same with unbiased estimates of HSIC                Song et al. 2012; Nguyen et al. 2021, equation 3
//	minibatch-cka      the same, summed over minibatches                       Nguyen et al. 2021, equation 2
//	rbf-cka            <HKH, HLH> / (|HKH| |HLH|), K = exp(-d^2 / (2 s^2))      Kornblith et al. 2019
//	cca                mean of the canonical correlations rho_i                Hotelling 1936
//	svcca              cca of the components that hold 99 % of the variance    Raghu et al. 2017
//	pwcca              sum a_i rho_i / sum a_i, a_i = sum_j |h_i.x_j|          Morcos et al. 2018
//	procrustes         |Sxy|_* / (|X| |Y|), |.|_* the sum of singular values   Williams et al. 2021
//	linear-regression  |Q_yᵀ X|^2 / |X|^2: R^2 of X from Y                     Kornblith et al. 2019
//	rsa                Spearman's correlation of the cosine dissimilarities    Kriegeskorte et al. 2008
//	mutual-knn         fraction of the k nearest neighbours in common          Huh et al. 2024
//
// Here d is the distance of two samples, s the setting bandwidth times the median distance, and k
// of mutual-knn a setting too. h_i is the i-th canonical variate of X, x_j its j-th variable, and
// Q_y an orthonormal basis of the columns of Y.
//
// Others are on the page of the measure, docs/reference/measures/similarity.md: distances after
// alignment by a rotation (shape metrics), matches of single variables, further statistics of
// neighbours, and differences between properties of the two representations. Each is a function in
// this package, listed in statistics. ReSi and netrep, which comments name, are two Python packages
// of such statistics.
//
// All statistics above are at most 1, and X with itself gives 1; mutual-knn gives less where
// distances tie, since ties are broken at random and independently in X and in Y. Where both
// representations are constant the similarity is 1, and where one of them is, 0. pwcca and
// linear-regression depend on which of the two is X. cca ignores invertible linear maps of X and Y,
// and pwcca and linear-regression those of Y. The other statistics above ignore rotations,
// reflections and a scale only.
//
// Value returns one statistic of two matrices, and Compare several with intervals and nulls:
//
//	x, err := similarity.Of(a, n, p) // a: n x p values of type float32
//	y, err := similarity.Of(b, n, q)
//	cka, err := similarity.Value(ctx, similarity.LinearCKA, x, y, similarity.Defaults())
//
// # Computation
//
// Most statistics come from p x p second moments, which are streamed, or from n x n Gram matrices
// where those are smaller. A study compares many pairs of layers at once, in a measure.Grid. It
// reads its samples in the random order of a measure.Layout, in blocks of up to 32 samples; the
// place of a sample is its position in this order. For canonical correlations the variables are
// whitened, that is, combined to uncorrelated ones of equal variance: by the Cholesky factor of the
// moments where the variables are well conditioned, otherwise by orthonormal combinations, which a
// few passes over the observations find. So nearly dependent variables cost no precision.
// Directions below the rounding of float64 are left out. With fewer samples than variables, cca,
// pwcca and linear-regression find orthonormal bases of X and Y from Gram matrices of variables
// scaled to unit variance. Directions below 1e-7 of the largest are left out then, with a warning.
// rbf-cka, rsa and mutual-knn need n x n values. These and the statistics that are not in the table
// use at most Settings.Samples samples, drawn at random. If there are more, a warning says so.
//
// # Intervals and nulls
//
// Every interval is a delete-a-group jackknife over up to twenty random groups of samples
// (resample.Jackknife). A replicate, the value without one group, is for
//
//   - linear-cka, debiased-cka, minibatch-cka, mutual-knn: the statistic without the group,
//     exactly.
//   - rbf-cka: the same, but with the bandwidth of all samples; rsa: the same, with the changes of
//     the ranks to first order.
//   - the statistics that are not in the table: the statistic without the group, exactly. If
//     a statistic grows with the number of samples, its replicates are scaled to the number of all
//     samples. For expensive ones two groups are left out at a time.
//   - canonical correlations, procrustes and linear-regression: the statistic without the group to
//     first order in the change of the moments, so that one decomposition serves all replicates.
//     Replicates of svcca are computed in the principal components of all samples. Where there are
//     more samples than variables, the effect of another number of components is added.
//
// The null, which chance alone gives, is the mean of the statistic over shuffles of the pairs, that
// is, of the rows of X against those of Y. It is
//
//   - tr Sxx tr Syy / ((n-1) |Sxx| |Syy|) for linear-cka, and the same with traces of HKH for
//     rbf-cka;
//   - 0 for debiased-cka, minibatch-cka and rsa;
//   - rank(Y) / (n-1) for linear-regression, and k / (n-1) for mutual-knn;
//   - the mean over up to ten drawn shuffles for canonical correlations, procrustes and the
//     statistics that are not in the table.
//
// Read a value against its null. With p and q near n, linear-cka and canonical correlations are
// near 1 for any two representations.
package similarity
