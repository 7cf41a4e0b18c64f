package firing

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/internal/state"
)

// A ThresholdEstimator finds the thresholds of many units (values of a layer), their global firing
// rates and their reference stimuli. It reads the inputs once, batch by batch. By default it is
// exact: for each sign s of an activation h it stores the k largest s h, of which the least is the
// threshold, and counts the values that equal it. If ThresholdOptions.Error allows it, it stores a
// quantile sketch, whose size grows with log k only. It then finds thresholds but no firing rates.
type ThresholdEstimator struct {
	units int          // number of units
	sides []*topValues // for the sign s = 1, and for s = -1 unless only s = 1 is considered
}

// ThresholdOptions are the options of a ThresholdEstimator.
type ThresholdOptions struct {
	Units      int  // number of units
	Rank       int  // k: a threshold is the k-th largest value
	References int  // number of reference stimuli of a unit, at least 1
	sparse     bool // only the sign s = 1 is considered
	// Error is the allowed relative error of the rank of a threshold (root mean square); 0 is
	// exact. Exact thresholds are used if they need no more memory.
	Error float64
	first int // index in its layer of the first unit; it seeds the random choices of a sketch
}

// NewThresholdEstimator returns an empty ThresholdEstimator.
func NewThresholdEstimator(o ThresholdOptions) *ThresholdEstimator {
	g := &ThresholdEstimator{units: o.Units}
	for range o.signs() {
		g.sides = append(g.sides, newTopValues(o.Units, max(o.Rank, 1), max(o.References, 1), o.Error, o.first))
	}
	return g
}

func (o ThresholdOptions) signs() int {
	if o.sparse {
		return 1
	}
	return 2
}

// signs are the values of s. A side is an index in signs.
var signs = [2]float32{1, -1}

// An Input describes one input of a ThresholdEstimator.
type Input struct {
	Index     int  // in the data; of inputs that activate a unit equally, the one with the lower index is stronger
	Reference bool // it can be a reference stimulus: all its transformed versions are available
}

// updateUnits adds responses of units lo to hi (exclusive); row i starts at i stride with unit lo.
// Disjoint ranges may be updated in parallel; then count must be called.
func (g *ThresholdEstimator) updateUnits(responses []float32, stride, lo, hi int, inputs []Input) {
	eligible := g.eligible(inputs)
	block := g.blockSize()
	for from := lo; from < hi; from += block {
		to := min(hi, from+block)
		for side, t := range g.sides {
			for i, in := range inputs {
				row := responses[i*stride+from-lo : i*stride+to-lo]
				t.update(row, signs[side], from, g.Len()+i, eligible[i], in)
			}
		}
	}
}

// blockSize returns the number of units that fit in a cache of 256 KiB, but at least 64.
func (g *ThresholdEstimator) blockSize() int {
	const cache = 256 << 10
	return max(64, cache/(len(g.sides)*g.sides[0].bytes()))
}

// eligible returns, for each input, how many earlier inputs can be reference stimuli.
func (g *ThresholdEstimator) eligible(inputs []Input) []int {
	before := make([]int, len(inputs))
	n := g.References()
	for i, in := range inputs {
		before[i] = n
		if in.Reference {
			n++
		}
	}
	return before
}

func (g *ThresholdEstimator) count(inputs []Input) {
	for _, t := range g.sides {
		for _, in := range inputs {
			t.n++
			if in.Reference {
				t.eligible++
			}
		}
	}
}

// Len returns the number of inputs so far.
func (g *ThresholdEstimator) Len() int { return g.sides[0].n }

// References returns the number of inputs so far that can be reference stimuli.
func (g *ThresholdEstimator) References() int { return g.sides[0].eligible }

// Code writes or reads the estimator.
func (g *ThresholdEstimator) Code(c *state.Codec) {
	t := g.sides[0]
	head := []int{g.units, len(g.sides), t.rank, t.references, t.n, t.eligible}
	want := head[:4:4]
	c.Values(&head)
	if len(head) != 6 || !slices.Equal(head[:4], want) || head[4] < 0 || head[5] < 0 ||
		head[5] > head[4] {
		c.Fail(fmt.Errorf("the state has units, signs, rank, references, inputs and eligible inputs "+
			"%v; the first four must be %v", head, want))
		return
	}
	for _, t := range g.sides {
		if c.Values(t); c.Reads() {
			t.n, t.eligible = head[4], head[5]
		}
	}
}

// Code writes or reads, for each unit, its k largest values (a sketch, or a heap with its number of
// ties), its references with their values, and the bound below which values change nothing.
func (t *topValues) Code(c *state.Codec) {
	if t.sketch != nil {
		c.Values(t.sketch)
	}
	c.Values(t.heap, t.tied, t.strongestValue, t.strongestIndex, t.bound)
}
