// Package resample computes confidence intervals of scores, and permutations for their nulls.
//
//	Jackknife    an interval from the values of a statistic without each group of samples in turn
//	Wilson       an interval for a proportion
//	Student      an interval for the mean of independent values
//	Welch        an interval for the difference of two such means
//	Mean         an interval at any level for the mean of independent values, also of few different ones
//	Difference   an interval for the difference of two such means
//	PValue       the p-value that belongs to an interval
//	HalfSamples  balanced half-samples: choices of four of eight groups of samples
//	RankSpread   the sampling distribution of the ranks of two representations, where a rank is the
//	             number of leading singular vectors that a score uses
//	Cycle        a permutation without fixed points, for the pairs of a null
//
// For instance, for a statistic of 80 samples that has the value a without the first 40 samples and
// b without the others:
//
//	low, high := resample.Jackknife(value, 80, []measure.Replicate{{a, 40}, {b, 40}})
//
// A Replicate is the value without some samples, and how many these are.
package resample
