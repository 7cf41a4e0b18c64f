package measure

import "errors"

// A Reducer is a Measure whose accumulators also take, in place of the activations of a layer, a
// few sums over them that the engine computes. On a graphics processor the activations then need not
// be copied to the CPU, which takes longer than to compute them.
type Reducer interface {
	Measure
	// Reduction returns what the engine computes for an accumulator of the site, or nil if the
	// accumulator needs the activations. It does not depend on the transformation.
	Reduction(s Site) *Reduction
}

// A Reduction lists the values of each sample that take the place of a layer's activations.
type Reduction struct {
	Sums []Sum
	// Means asks for the means over the positions of z, and then those of z' (see package pooling),
	// after the sums.
	Means bool
	Width int // number of values of each sample
}

// A Sum is a sum over the values of a layer for one sample, in float32.
type Sum struct {
	Of Operand
	// Absolute asks for the sum of absolute values, else of squares.
	Absolute bool
	// Directions divides z and z' by their lengths first. A vector whose sum of squares is below
	// LeastSquares is divided by the square root of that.
	Directions bool
}

// An Operand is what a Sum adds up. z are the clean activations of a sample, z' the transformed ones.
type Operand int

// The operands.
const (
	OfClean              Operand = iota // z
	OfTransformed                       // z'
	OfDifference                        // z - z'
	OfShuffledDifference                // z of the partner (see Layout.Partners), minus z'
)

// LeastSquares is the smallest sum of squares of float32 numbers whose precision does not suffer
// from those below 1e-38, which underflow.
const LeastSquares = 1e-22

// ErrNeedsActivations is returned by Update if the values of a Reduction do not suffice for a
// sample. The scores then have to be computed from the activations.
var ErrNeedsActivations = errors.New("the scores cannot be computed from sums that the device has computed")

// Partners pairs the samples of a batch for a null (a score over pairs of x of one sample with T(x)
// of another). The batch has the samples at the given places, which ascend and are whole blocks:
// all samples of a block that are read. Partners returns for each sample the index in the batch of
// the sample whose x is paired with its T(x): the one before in its block or, for the first, the
// last one. A sample that is alone in its block is its own partner.
func (l Layout) Partners(places []int) []int {
	partners := make([]int, len(places))
	for from := 0; from < len(places); {
		to := from + 1
		for to < len(places) && places[to]/l.Block == places[from]/l.Block {
			to++
		}
		partners[from] = to - 1
		for i := from + 1; i < to; i++ {
			partners[i] = i - 1
		}
		from = to
	}
	return partners
}
