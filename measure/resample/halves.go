package resample

import (
	"math"

	"github.com/noether-ml/noether/measure"
)

// HalfGroups is the number of groups of samples that HalfSamples combines.
const HalfGroups = 8

// HalfSamples holds seven half-samples of four of eight groups, which have a plus. Their sign
// vectors are orthogonal, rows of a Hadamard matrix (balanced half-samples, McCarthy 1969). So the
// deviations of the halves from the mean of all groups do not correlate, and their variance
// estimates its variance.
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

// InHalf reports whether group 0 to 7 is in half-sample 0 to 6.
func InHalf(half, group int) bool { return HalfSamples[half][group] == '+' }

// widening is sqrt(g / (g - 1)) for the g = 7 halves. The mean squared deviation of g uncorrelated
// values from their own mean is expected to be (g - 1) / g of their variance, which Jackknife does
// not correct.
var widening = math.Sqrt(float64(len(HalfSamples)) / float64(len(HalfSamples)-1))

// WidenHalves scales the replicates of HalfSamples about their mean, in place, for Jackknife.
func WidenHalves(replicates []measure.Replicate) {
	var mean float64
	for _, r := range replicates {
		mean += r.Value / float64(len(replicates))
	}
	for i := range replicates {
		replicates[i].Value = mean + widening*(replicates[i].Value-mean)
	}
}
