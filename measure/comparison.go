package measure

import (
	"encoding"
	"fmt"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Comparison computes statistics of two representations of the same inputs: layers of two models,
// two layers of one model, or one layer on x and on T(x). Layers are compared in grids, so that
// what is computed from one layer alone, such as its Gram matrix, is computed once for all its
// pairs.
type Comparison interface {
	Method
	// Directional reports whether the scores of (a, b) differ from those of (b, a). If not, each
	// pair of models or layers is computed once.
	Directional() bool
	// Skip returns why a pair of layers cannot be compared, or "". The grid given has one pair.
	Skip(g Grid) string
	// Cost returns an upper bound on the bytes that an accumulator of the grid holds. Grids that
	// are too large are divided, so the scores of a pair must not depend on the other pairs of its
	// grid.
	Cost(g Grid) int64
	// New returns an empty accumulator for the grid.
	New(g Grid) (GridAccumulator, error)
}

// A Grid specifies what a GridAccumulator compares: layers of one side with layers of the other.
type Grid struct {
	A, B   []onnx.Layer // name, operator, depth, shape and axes of what will be fed
	Pairs  [][2]int     // indices into A and B
	Layout Layout       // how the samples are ordered, blocked and grouped
	// Self says that both sides are one model on the same view. Layers of equal names then have the
	// same values, and their tensors in a batch share memory.
	Self bool
	// Budget is the bytes that the study may hold for this comparison; 0: no bound. It is the same
	// for every grid of a study. A statistic that does not fit is undefined, and its score has a
	// warning.
	Budget int64
	// Key seeds the random draws of the accumulator.
	Key Key
}

// A PairBatch holds the activations of every layer of both sides on b samples. The tensors are
// valid during Update only, and must not be modified.
type PairBatch struct {
	Place []int           // places in the layout
	Index []int           // indices in the data set
	Label []int           // labels, NoLabel where there is none
	A     []tensor.Tensor // for each of Grid.A: b x ...
	B     []tensor.Tensor // for each of Grid.B: b x ...
}

// A GridAccumulator gathers sufficient statistics for a grid. As for an Accumulator, Update and
// Merge may be called in any order that keeps each block's samples in order. After an error from
// either it must not be used.
type GridAccumulator interface {
	Update(b *PairBatch) error
	// Merge adds the state of another accumulator of the same grid, which has seen other blocks.
	Merge(other GridAccumulator) error
	// Scores computes the statistics of every pair of the grid. It does not change the state.
	Scores() ([]PairScore, error)
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// A PairScore is a score of two layers.
type PairScore struct {
	A, B int // indices into the layers of either side; WholeModel for a score of the models
	Score
}

// WholeModel is the layer index in a PairScore of whole models, such as the agreement of two
// models' predictions.
const WholeModel = -1

// A Side is one of the two representations that are compared.
type Side int

// The sides of a comparison.
const (
	SideA Side = iota
	SideB
)

// NonFiniteIn is the error for NaN or infinity in the activations of a grid. The caller adds names.
type NonFiniteIn struct {
	Side  Side
	Layer int // index into the layers of that side
	Index int // of the first sample concerned
	Name  string
}

func (e *NonFiniteIn) Error() string {
	return fmt.Sprintf("NaN or infinity in the activations of sample %s", sampleName(e.Index, e.Name))
}
