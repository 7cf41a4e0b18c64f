package resample

import (
	"math"

	"github.com/noether-ml/noether/measure"
)

// HalfGroups is the number of groups of samples that HalfSamples combines.
const HalfGroups = 8

// HalfSamples holds seven half-samples of eight groups, with a plus for each group of a half. Every
// half has four groups. As vectors of signs, the halves are orthogonal to each other: they are rows
// of a Hadamard matrix (balanced half-samples, McCarthy 1969). So the values of the halves for a
// sum over groups are uncorrelated, and their variance estimates that of the sum.
//
// A jackknife that leaves out small groups multiplies their effect by a large factor (h - 1 in the
// formula of Jackknife). That is wrong for values that vary at random however few samples are left
// out, such as canonical vectors of neighbouring correlations. A half leaves out as many samples as
// it contains, so the factor is 1.
var HalfSamples = [HalfGroups - 1]string{
	"-++-+--+",
	"--++-+-+",
	"---++-++",
	"+---++-+",
	"-+---+++",
	"+-+---++",
	"--+-+++-",
}

// InHalf reports whether a group, 0 to 7, is in a half-sample, 0 to 6.
func InHalf(half, group int) bool { return HalfSamples[half][group] == '+' }

// widening corrects deviations of the halves from their own mean, instead of the true mean, which
// Jackknife does not: those of g independent values are too small by sqrt(g / (g - 1)).
var widening = math.Sqrt(float64(len(HalfSamples)) / float64(len(HalfSamples)-1))

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
