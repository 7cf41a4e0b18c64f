package resample

import "github.com/noether-ml/noether/measure"

// HalfGroups is the number of groups of samples that HalfSamples are made of.
const HalfGroups = 10

// HalfSamples are ten halves of ten groups of samples, with a plus for each group of a half. Every
// half has five groups, and every group is in five halves. Any two groups are in the same half as
// often as in different halves, as nearly as possible (balanced half-samples, McCarthy 1969). So
// the variance among halves of a sum over groups is the variance of that sum.
//
// A jackknife scales the effect of a small group up. That is wrong for values that vary at random
// however few samples are left out, such as canonical vectors of neighbouring correlations. A half
// leaves out as many samples as it has, so nothing is scaled.
var HalfSamples = [HalfGroups]string{
	"++-+--++--",
	"----+++++-",
	"+--+-+--++",
	"+++-+---+-",
	"-++--+-++-",
	"-+--+++--+",
	"+-+---++-+",
	"--++--+-++",
	"-+-++--+-+",
	"+-++++----",
}

// InHalf reports whether a group belongs to a half.
func InHalf(half, group int) bool { return HalfSamples[half][group] == '+' }

// widening accounts for what Jackknife does not know of ten halves. They have seven degrees of
// freedom for a sum over groups, not nine, so Student's t is 1.045 times as large. And what is
// random in each of them varies around its own mean by the root of 10 / 9 more than around the mean
// of ten.
const widening = 1.045 * 1.054

// WidenHalves moves the replicates of HalfSamples away from their mean, in place, so that Jackknife
// of them has the right width.
func WidenHalves(replicates []measure.Replicate) {
	var mean float64
	for _, r := range replicates {
		mean += r.Value / float64(len(replicates))
	}
	for i := range replicates {
		replicates[i].Value = mean + widening*(replicates[i].Value-mean)
	}
}
