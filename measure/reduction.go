package measure

import (
	"errors"

	"github.com/noether-ml/noether/tensor"
)

// A Reducer is a Measure whose accumulators also take a few sums that the engine computes.
// Activations then need not be copied from a graphics processor, which takes longer than computing
// them.
type Reducer interface {
	Measure
	// Reduction returns those of a site, nil if activations are needed, whatever the
	// transformation.
	Reduction(s Site) *Reduction
}

// A Reduction lists the values of each sample that take the place of a layer's activations.
type Reduction struct {
	Sums []Sum
	// Means asks for the means over positions (package pooling) of z, then of z', after the sums.
	Means bool
	Width int // number of values of each sample
}

// A Sum is a sum over the values of a layer for one sample, in float32.
type Sum struct {
	Of Operand
	// Absolute asks for the sum of absolute values, else of squares.
	Absolute bool
	// Directions divides z and z' by their lengths, or by the root of LeastSquares where that is
	// larger.
	Directions bool
}

// An Operand is what a Sum adds up. z are the clean activations of a sample, z' the transformed
// ones.
type Operand int

// The operands.
const (
	OfClean              Operand = iota // z
	OfTransformed                       // z'
	OfDifference                        // z - z'
	OfShuffledDifference                // z of the partner (see Layout.Partners), minus z'
)

// LeastSquares is the least sum of squares of float32 that underflow below 1e-38 does not affect.
const LeastSquares = 1e-22

// ErrNeedsActivations is returned by Update if a Reduction's values do not suffice for a sample.
var ErrNeedsActivations = errors.New("the scores cannot be computed from sums that the device has computed")

// Partners pairs the samples of a batch for a null. Places ascend and are whole blocks, as far as
// read. It returns for each T(x) the index of its x: the sample before or, for a block's first, the
// last. A sample alone in its block is its own partner.
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

// A Pooler is a Measure or Comparison that needs only a vector of some layers. An engine may then
// pool their activations before they are copied: Update takes b x width values of them as well.
type Pooler interface {
	Method
	// Pooling returns how a layer may be pooled (package pooling): "mean", "class" or "patch"; "" if
	// its activations are needed.
	Pooling(l tensor.Layer) string
}
