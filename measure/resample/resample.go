// Package resample computes the intervals and the nulls of measures: how much a score would vary on
// other samples, and what it would be by chance.
//
//	Jackknife    an interval from values without a group of samples, or without half of them
//	Wilson       an interval of a proportion
//	HalfSamples  balanced halves of ten groups of samples
//	RankSpread   how scores change with the rank that a subspace has on other samples
//	Cycle        a permutation without fixed points, for the pairs of a null
//
// For instance, with the values of a statistic without each of two groups of 40 of 80 samples:
//
//	low, high := resample.Jackknife(value, 80, []measure.Replicate{{a, 40}, {b, 40}})
package resample
