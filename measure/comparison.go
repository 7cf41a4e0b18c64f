package measure

import (
	"encoding"
	"fmt"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Comparison computes statistics of two representations of the same inputs: layers of two models, two layers of one model,
// or one layer on x and on T(x). Layers are compared in grids, so that what is computed of one layer (its moments, its
// Gram matrix) serves every pair that it is part of.
type Comparison interface {
	Method
	// Directional reports whether the scores of (a, b) differ from those of (b, a). Where they do not, each pair of models or of
	// layers is computed once.
	Directional() bool
	// Skip returns why a pair of layers cannot be compared, or "". The grid given has one pair.
	Skip(g Grid) string
	// Cost is an upper bound on the bytes that an accumulator of the grid holds. Grids that are too large are cut into smaller
	// ones, so the scores of a pair must not depend on which others share its grid.
	Cost(g Grid) int64
	// New returns an empty accumulator for the grid.
	New(g Grid) (GridAccumulator, error)
}

// A Grid is where a GridAccumulator sits: layers of one side, layers of the other, and which of them are compared.
type Grid struct {
	A, B   []onnx.Layer // name, operator, depth, shape and axes of what will be fed
	Pairs  [][2]int     // indices into A and B
	Layout Layout       // how the samples are ordered, blocked and grouped
	// Self says that both sides are one model on the same view: layers of equal names are the same numbers, and their
	// tensors in a batch share their memory.
	Self bool
	// Budget is the bytes that may be held for all layers of a study's bound, 0: no bound. It is the same for every grid of
	// a study, whole or cut. A statistic that cannot stay within it says so in a warning of its score.
	Budget int64
	// Key is what random draws inside the accumulator are keyed by.
	Key Key
}

// A PairBatch is what a GridAccumulator is fed: every layer of both sides on some samples. The tensors are valid during the
// call only, and must not be written to.
type PairBatch struct {
	Place []int           // places in the order, see Layout
	Index []int           // indices in the source
	Label []int           // labels, NoLabel where there is none
	A     []tensor.Tensor // for each of Grid.A: b x ...
	B     []tensor.Tensor // for each of Grid.B: b x ...
}

// A GridAccumulator gathers sufficient statistics for a grid. What is said of Accumulator holds for it too: Update and Merge may come in any
// interleaving that keeps each block's samples in order, and after an error of either it is of no further use.
type GridAccumulator interface {
	Update(b *PairBatch) error
	// Merge adds the state of another accumulator of the same grid, which has seen other blocks.
	Merge(other GridAccumulator) error
	// Scores computes the statistics of every pair of the grid. It leaves the state as it is.
	Scores() ([]PairScore, error)
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// A PairScore is a score of two layers.
type PairScore struct {
	A, B int // indices into the layers of either side; WholeModel for what concerns no layer
	Score
}

// WholeModel stands in a PairScore where a side is a model as a whole, such as the agreement of two models' predictions.
const WholeModel = -1

// A Side is one of the two representations that are compared.
type Side int

// The sides of a comparison.
const (
	SideA Side = iota
	SideB
)

// NonFiniteIn is the error of activations of a grid that hold NaN or infinity. The caller adds names.
type NonFiniteIn struct {
	Side  Side
	Layer int // index into the layers of that side
	Index int // of the first sample concerned
	Name  string
}

func (e *NonFiniteIn) Error() string {
	return fmt.Sprintf("NaN or infinity in the activations of sample %s", sampleName(e.Index, e.Name))
}
