package measure

import (
	"encoding"
	"fmt"

	"github.com/noether-ml/noether/tensor"
)

// A Comparison computes statistics of two representations of the same inputs: layers of two models,
// two layers of one model, or one layer on x and on T(x). Layers are compared in grids, so that
// results for a single layer, such as its Gram matrix, are computed once.
type Comparison interface {
	Method
	// Directional reports whether the scores of (a, b) and (b, a) differ. If not, each pair is
	// computed once.
	Directional() bool
	// Skip returns why a pair of layers cannot be compared, or "". The grid has one pair.
	Skip(g Grid) string
	// Cost returns an upper bound on the memory of an accumulator of the grid, in bytes. Large
	// grids are divided, so the scores of a pair must not depend on other pairs.
	Cost(g Grid) int64
	// New returns an empty accumulator for the grid.
	New(g Grid) (GridAccumulator, error)
}

// A Grid specifies the layers of one side and the layers of the other that are compared.
type Grid struct {
	A, B   []tensor.Layer // name, operator, depth, shape and axes of the activations
	Pairs  [][2]int       // indices into A and B
	Layout Layout         // how the samples are ordered, blocked and grouped
	// Self reports whether both sides are one model on the same inputs; layers of equal names then
	// share memory in a batch.
	Self bool
	// Budget is the memory for this comparison of the study, in bytes; 0: no bound. A statistic
	// that needs more is undefined, with a warning.
	Budget int64
	// Key seeds the random draws of the accumulator.
	Key Key
}

// A PairBatch holds the activations of every layer of both sides on b samples. They are valid
// during Update only, and must not be modified.
type PairBatch struct {
	Place []int           // positions of the samples in the layout's order
	Index []int           // indices of the samples in the data set
	Label []int           // labels; NoLabel: none
	A     []tensor.Tensor // for each of Grid.A: b x ...
	B     []tensor.Tensor // for each of Grid.B: b x ...
}

// A GridAccumulator accumulates sufficient statistics for a grid. Update and Merge may be called in
// any order in which each block's samples are in order. After an error from either it must not be
// used.
type GridAccumulator interface {
	// Update adds a batch of samples.
	Update(b *PairBatch) error
	// Merge adds the state of another accumulator of the same grid, for other blocks.
	Merge(other GridAccumulator) error
	// Scores computes the statistics of every pair of the grid. It does not change the state.
	Scores() ([]PairScore, error)
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// A PairScore is a Score of two layers.
type PairScore struct {
	A, B int // indices into the layers of the two sides, or WholeModel
	Score
}

// WholeModel is the layer index in a PairScore of whole models.
const WholeModel = -1

// A Side is one of the two representations that are compared.
type Side int

// The sides of a comparison.
const (
	SideA Side = iota
	SideB
)

// A NonFiniteIn is the error for NaN or infinity in the activations of a grid.
type NonFiniteIn struct {
	Side  Side
	Layer int    // index into the layers of that side
	Index int    // index in the data set of the first such sample
	Name  string // name of that sample; the caller adds it
}

func (e *NonFiniteIn) Error() string {
	return fmt.Sprintf("NaN or infinity in the activations of sample %s", sampleName(e.Index, e.Name))
}
