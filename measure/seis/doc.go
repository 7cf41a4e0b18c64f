// Package seis measures whether a layer preserves spatial information when its input is
// transformed, and whether it does so at the same positions. It computes the Subspace-based
// Equivariance and Invariance Scores of Lin, Farrahi and Cai ("SEIS: Subspace-based Equivariance
// and Invariance Scores for Neural Representations").
//
// Let z (b x c x h x w) be the activations of a layer on b inputs, and z' those on the transformed
// inputs. Each channel of each sample is one observation of d = h w positions. So A is d x n with n
// = b c, its rows centred, and A' is the same for z'.
//
//  1. Take the smallest number of leading left singular vectors of A and of A' that hold 99 % of the
//     squared singular values: U (d x k) and U' (d x k'). They are spatial patterns.
//
//  2. Find the canonical correlations rho_i of UᵀA and U'ᵀA', and the canonical vectors w_i and
//     v_i, for i up to r = min(k, k').
//
//  3. Average them (equations 4 and 5 of the paper):
//
//     equivariance = 1/r sum_i rho_i
//     invariance   = 1/r sum_i rho_i |cos(U w_i, U' v_i)|
//
// Equivariance measures how much of the transformed feature maps is a linear function of the clean
// ones. Invariance measures how much of them is the same pattern at the same positions. w_i and v_i
// are coordinates in two bases, so the cosine is taken between U w_i and U' v_i.
//
// Both lie in [0, 1], and invariance never exceeds equivariance:
//
//	both near 1                          the layer is invariant to the transformation
//	high equivariance, low invariance    the information is preserved at other positions
//	both low                             the information is not preserved
//
// For arrays in memory, use Compare:
//
//	scores, err := seis.Compare(z, zt, seis.Defaults()) // tensors b x c x h x w
//	fmt.Println(scores[0].Statistic, scores[0].Value)   // equivariance
//
// # Statistics
//
//	equivariance, invariance            as above
//	rank                                r, the number of canonical correlations
//	null-equivariance, null-invariance  the same of shuffled pairs
//
// Canonical correlations exceed zero by chance: with n observations of k patterns they are about
// sqrt(k / n). The null pairs z of one sample and channel with z' of another sample and another
// channel, and computes the same scores. Only the difference from the null is meaningful.
//
// # Limitations
//
//   - The transformation must be the same for all samples: drawn once for each repetition of the
//     study's random draws (per: trial in a study file). SEIS finds one linear map, and there is
//     none for angles that are drawn for each sample. The scores then have a warning.
//   - If canonical correlations are equal (for a flip, or a translation by whole positions), the
//     canonical vectors are not unique, and invariance depends on the solver. It then has a warning.
//     Equivariance is not affected.
//   - With fewer observations than patterns, all correlations are 1 for any data. The null is then 1,
//     and the scores have a warning.
//
// Neither score depends on the order of channels. They do depend on linear combinations of channels
// and on the scales of channels, since channels are observations.
//
// # How it is computed
//
// A is not formed. A linalg.Scatter keeps the means and the second moments of (z, z'), whatever the
// number of samples. The second moments, or scatter, are the sums of products of deviations from
// the mean. Some 1,024 observations, or 2,048 with an interval, are multiplied at once, in float32
// around their own mean, and added in float64. They are those of a segment: some consecutive
// samples of a block, or up to four blocks of few channels (see parts). The bounds of segments do
// not depend on the batch size, nor on whether a run was interrupted, and neither do scores. Where
// shards divide a segment, scores differ by rounding in float32. Layers of more than 1,024
// positions are average-pooled, 56 x 56 to 28 x 28, with a warning. Results that depend on the
// clean activations alone are computed once for all transformations of a layer: their products,
// their subspace, and their scatters for the interval.
//
// With n observations of d positions and 4 n <= d, moments over positions are larger than the
// observations. A and A' are then held, and their 2 n columns are replaced by the coordinates of
// these in an orthonormal basis of the space that they span. The coordinates follow from the
// 2 n x 2 n Gram matrix. Scores do not depend on the basis, so they are those of the moments.
//
// The interval is made of seven halves of the samples (resample.HalfSamples). Their scores are
// computed in float32 in the subspaces of all samples. The number of patterns that hold 99 % of the
// variance differs between halves; the effect of such a change of the ranks is estimated to first
// order (resample.RankSpread). The moments of eight groups of samples, of which the halves consist,
// are kept in a measure.Store, a file or memory, if they fit into the memory bound
// (measure.Site.Budget).
//
// In the source, x and y are the observations of z and z', the clean and the transformed view, d
// values each.
package seis
