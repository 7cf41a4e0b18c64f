package resample

import "github.com/noether-ml/noether/measure"

// HalfGroups is the number of groups of samples that HalfSamples combines.
const HalfGroups = 10

// HalfSamples holds ten half-samples of ten groups, with a plus for each group of a half. Every
// half has five groups, and every group is in five halves. Any two groups are in the same half as
// often as in different halves, as nearly as possible (balanced half-samples, McCarthy 1969). So
// the variance among halves of a sum over groups estimates the variance of that sum.
//
// A jackknife that leaves out small groups multiplies their effect by a large factor (h - 1 in the
// formula of Jackknife). That is wrong for values that vary at random however few samples are left
// out, such as canonical vectors of neighbouring correlations. A half leaves out as many samples as
// it contains, so the factor is 1.
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

// InHalf reports whether a group, 0 to 9, is in a half-sample, 0 to 9.
func InHalf(half, group int) bool { return HalfSamples[half][group] == '+' }

// widening corrects two assumptions of Jackknife that ten half-samples do not meet. For a sum over
// groups they have seven degrees of freedom, not nine: the quantile of Student's t is 1.045 times
// as large. For independent values the deviations from the mean of ten are too small by sqrt(10 /
// 9), which is 1.054.
const widening = 1.045 * 1.054

// WidenHalves scales the deviations of the replicates of HalfSamples from their mean, in place, so
// that Jackknife returns an interval of the right width.
func WidenHalves(replicates []measure.Replicate) {
	var mean float64
	for _, r := range replicates {
		mean += r.Value / float64(len(replicates))
	}
	for i := range replicates {
		replicates[i].Value = mean + widening*(replicates[i].Value-mean)
	}
}
