package measure

import (
	"errors"

	"github.com/noether-ml/noether/onnx"
)

// A Reducer is a Measure whose accumulators also take, in place of the activations of a layer, a
// few values of each sample that the engine (ONNX Runtime) computes from them in the graph of the
// model. On a graphics processor the activations then need not be copied to the CPU, which takes
// longer than to compute them.
type Reducer interface {
	Measure
	// Reduction returns what the engine computes for an accumulator of the site, or nil if the
	// accumulator needs the activations. It does not depend on the transformation.
	Reduction(s Site) *Reduction
}

// A Reduction is a function of the clean (not transformed) and the transformed activations of the
// samples of a batch, as part of a graph.
type Reduction struct {
	Name  string // Reductions of a layer with the same name are the same
	Width int    // number of values for each sample
	// Build adds the function to a graph and returns its result, b x Width. clean and transformed
	// are b x the shape of the layer, and partners, b indices of type int32, is Layout.Partners.
	Build func(b *onnx.Builder, clean, transformed, partners onnx.Value) onnx.Value
}

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
