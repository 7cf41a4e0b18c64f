package measure

import (
	"encoding"
	"fmt"

	"github.com/noether-ml/noether/tensor"
)

// A Comparison computes statistics of two representations of the same inputs: layers of two models,
// two layers of one model, or one layer on x and on T(x). Layers are compared in grids, so that
// results for a single layer, such as its Gram matrix, are computed once for all its pairs. It is a
// Method, that is, a measure with its settings.
type Comparison interface {
	Method
	// Directional reports whether the scores of (a, b) differ from those of (b, a). If not, each
	// pair of models or layers is computed once.
	Directional() bool
	// Skip returns why a pair of layers cannot be compared, or "". The grid given has one pair.
	Skip(g Grid) string
	// Cost returns an upper bound on the memory of an accumulator of the grid, in bytes. Grids that
	// are too large are divided, so the scores of a pair must not depend on the other pairs of its
	// grid.
	Cost(g Grid) int64
	// New returns an empty accumulator for the grid.
	New(g Grid) (GridAccumulator, error)
}

// A Grid specifies what a GridAccumulator compares: layers of one side with layers of the other.
// Samples are read in a random order that is divided into blocks of successive samples and, for the
// jackknife, into groups of blocks.
type Grid struct {
	A, B   []tensor.Layer // name, operator, depth, shape and axes of the activations
	Pairs  [][2]int       // indices into A and B
	Layout Layout         // how the samples are ordered, blocked and grouped
	// Self reports whether both sides are the same model on the same inputs. Layers of equal names
	// then have the same values, and their tensors in a batch share memory.
	Self bool
	// Budget is the memory that the study may use for this comparison, in bytes; 0: no bound. It is
	// the same for every grid of a study. A statistic that needs more is undefined, and its score
	// has a warning.
	Budget int64
	// Key seeds the random draws of the accumulator.
	Key Key
}

// A PairBatch holds the activations of every layer of both sides on b samples. The tensors are
// valid during Update only, and must not be modified.
type PairBatch struct {
	Place []int           // positions of the samples in the layout's order
	Index []int           // indices of the samples in the data set
	Label []int           // labels; NoLabel: none
	A     []tensor.Tensor // for each of Grid.A: b x ...
	B     []tensor.Tensor // for each of Grid.B: b x ...
}

// A GridAccumulator accumulates sufficient statistics for a grid. As for an Accumulator, Update and
// Merge may be called in any order in which the samples of each block are in order. After an error
// from either it must not be used.
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

// A NonFiniteIn is the error for NaN or infinity in the activations of a grid. The caller of the
// accumulator adds the names of model and layer.
type NonFiniteIn struct {
	Side  Side
	Layer int    // index into the layers of that side
	Index int    // index in the data set of the first such sample
	Name  string // name of that sample; the caller adds it
}

func (e *NonFiniteIn) Error() string {
	return fmt.Sprintf("NaN or infinity in the activations of sample %s", sampleName(e.Index, e.Name))
}
