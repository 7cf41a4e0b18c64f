// Package resample makes the intervals and the nulls of measures: what a score would be on other
// samples, and what chance alone gives.
//
//	Jackknife    an interval from values that leave a group of samples out, or half of them
//	Wilson       an interval of a proportion
//	HalfSamples  halves of ten groups, for statistics that vary more than in proportion to what is left out
//	RankSpread   what scores gain and lose where other samples give a subspace another rank
//	Cycle        a permutation that leaves nothing in place: the partners of a null
package resample
