package resample

import (
	"math"

	"github.com/noether-ml/noether/measure"
)

// HalfGroups is the number of groups of samples that HalfSamples combines.
const HalfGroups = 8

// HalfSamples holds seven half-samples, each of four of eight groups of samples, which have a plus.
// As vectors of signs, the halves are orthogonal to each other: they are rows of a Hadamard matrix
// (balanced half-samples, McCarthy 1969). So the means of the halves deviate from the mean of all
// groups without correlation, and their variance estimates that of the mean.
//
// A jackknife that leaves out small groups multiplies their effect by a large factor (h_j - 1 in
// the formula of Jackknife). That makes intervals too wide for values that change at random however
// few samples are left out, such as canonical vectors whose correlations are nearly equal. A half
// leaves out as many samples as it contains, so the factor is 1.
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

// widening is sqrt(g / (g - 1)) for the g = 7 halves. The mean squared deviation of g uncorrelated
// values from their own mean is expected to be (g - 1) / g of their variance, which Jackknife does
// not correct.
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
