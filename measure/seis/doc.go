// Package seis measures what is left of the spatial information of a layer when its input is transformed, and whether
// it is still in the same place: the Subspace-based Equivariance and Invariance Scores of Lin, Farrahi and Cai
// ("SEIS: Subspace-based Equivariance and Invariance Scores for Neural Representations").
//
// Let z (b x c x h x w) be a layer's activations on b inputs and z' those on the transformed inputs. Each channel of
// each sample is one observation of the d = h w positions, so A is d x n with n = b c, and A' the same of z'; rows
// are centred.
//
//  1. Of each, keep the fewest leading left singular vectors, U and U', that hold 99 % of the squared singular
//     values: the patterns in space that the layer in fact uses, k and k' of them.
//  2. Find the canonical correlations rho_i and canonical vectors w_i, v_i between UᵀA and U'ᵀA', for i up to r =
//     min(k, k'): the pairs of patterns, one seen before the transformation and one after it, that go together
//     best.
//  3. equivariance = 1/r sum_i rho_i: how much of the layer after the transformation is a linear function of what
//     it was before (equation 4). invariance = 1/r sum_i rho_i |cos(U w_i, U' v_i)|: how much of it is, besides,
//     the same pattern in the same place (equation 5; w_i and v_i have coordinates in two bases, so the cosine is
//     taken in space).
//
// Both lie in [0, 1] and invariance never exceeds equivariance. Both near 1: the layer does not notice the
// transformation. High equivariance and low invariance: it follows the transformation, the information is there and
// has moved. Both low: the information is gone. Equivariance is the same whatever permutation, or other orthogonal
// map, of the positions follows the layer on one side. Neither score sees the order of channels; other mixtures of
// channels, and their scales, do count, since channels are observations.
//
// # Statistics
//
//	equivariance, invariance            as above
//	rank                                r, the number of canonical correlations
//	null-equivariance, null-invariance  the same from pairs that have nothing to do with each other
//
// The null. Canonical correlations are not zero by chance: with n observations of k patterns they are about sqrt(k /
// n) and more. The null pairs z of one sample and channel with z' of another sample and another channel, drawn within
// blocks of samples of a run, and computes the scores of that. A score means something by as much as it exceeds its
// null.
//
// # When not to trust it
//
//   - The transformation must be one for all samples (per: trial). SEIS looks for one linear map, and angles drawn
//     anew for each sample have none: rotations over 360 degrees then give 0.4 where one rotation gives 0.997. A
//     warning says so.
//   - Where canonical correlations tie exactly (a flip, a translation by whole positions), the canonical vectors
//     are not unique, and invariance depends on which ones the solver picks. A warning says so. Equivariance is
//     not concerned.
//   - With fewer observations than patterns correlations are 1 whatever the data. The null shows it, and a
//     warning.
//
// # What is computed
//
// A is never formed. A linalg.Scatter keeps the sums and the second moments of (z, z') around their means: 2 d
// numbers and a triangle of 2 d x 2 d, whatever the number of samples. Samples are multiplied in segments that depend
// on the layout of the run alone (about 1,024 observations of one block), in float32 around the segment's own mean, so
// scores do not depend on batch size, sharding or resuming. The products of each segment are added up in float64: sums of
// several blocks' products in float32 take a tenth less time, but depend on where shards end, and where canonical
// correlations tie, invariance then differs by some thousandths between shards and the whole. Layers of more than 56 x 56 positions are average-pooled
// down to that many, with a warning: two 112 x 112 maps have second moments of 2.5 GB.
//
// The interval is made of ten groups of samples, which are runs of the order that samples come in. Memory holds the moments of the group that
// is being added to; those of others and their sum are in a measure.Store, in float32 and in float64. There are groups only where they would
// fit into the memory bound. A replicate is the scores of five of the groups, computed anew in float32 from the moments of the coordinates in
// U and U' of all samples (linalg.Halves). Halves, since canonical vectors of neighbouring correlations mix with any change: leaving out a
// tenth shows nine times the variance that this has. What other ranks would do is added: where the fraction of the variance is
// reached is followed to first order, and what a pattern more or less is worth is computed twice.
package seis
