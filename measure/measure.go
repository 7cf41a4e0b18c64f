// Package measure defines measures: what they need, how they are fed batch by batch, how the states
// of parts are merged, and what a score holds.
//
// Most measures are accumulators of sufficient statistics of fixed size, so memory does not grow
// with the data. Their states can be merged, so shards and machines can share the work, and
// serialised, so a stopped run can be resumed. Each family of measures is a package below this one.
//
//	Measure       one layer's activations on x and on T(x): an Accumulator for each layer
//	Comparison    two representations of the same inputs: a GridAccumulator for many pairs of layers
//	procedure     work in steps on stored samples, such as training: see package measure/procedure
//
// A measure is used as follows:
//
//	acc, err := m.New(site)
//	for each batch {
//		err = acc.Update(batch)
//	}
//	scores, err := acc.Scores()
package measure

import (
	"encoding"
	"errors"
	"fmt"
	"io"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Method is a Measure, a Comparison or a procedure: an entry of measures in a study. It is
// immutable.
type Method interface {
	// Name returns the name in study files and in scores, for instance "seis".
	Name() string
	// Descriptor returns the description of the measure and its statistics. Its name is Name.
	Descriptor() Descriptor
	// Version returns a number that changes when the same data would give other scores. Finished
	// cells of an older version are computed again.
	Version() int
	// Settings returns what the scores depend on besides the data, as a value that encodes to
	// canonical JSON.
	Settings() any
}

// A Measure computes statistics of how a layer's activations, or a model's predictions, change
// under a transformation.
type Measure interface {
	Method
	// Needs returns what accumulators must be fed.
	Needs() Needs
	// Skip returns why the site cannot be measured (a layer without space, a model without
	// classes), or "".
	Skip(s Site) string
	// Cost returns an upper bound on the bytes that an accumulator of the site holds.
	Cost(s Site) int64
	// New returns an empty accumulator for the site.
	New(s Site) (Accumulator, error)
}

// A Borrower is a Measure whose accumulators take memory from a pool during Update. That memory is
// needed once for each core, not for each accumulator.
type Borrower interface {
	// Borrowed returns an upper bound on the bytes that an accumulator of the site takes from the
	// pool. Cost does not include them.
	Borrowed(s Site) int64
}

// Needs says what the accumulators of a measure must be fed.
type Needs struct {
	Prediction bool // the model's class scores, for one accumulator; otherwise each chosen layer, for one accumulator each
	Labels     bool // samples must carry labels
	Moved      bool // the view under the transformation, in addition to the clean view
	PerTrial   bool // the transformation should be drawn once for each trial
	// CleanServes says that the measure can also be used without transformations, for instance
	// accuracy. Then Batch.Moved is empty, and statistics that need the moved view have no scores.
	CleanServes bool
}

// A Site specifies what an accumulator measures: a layer of a model on some data under some
// transformation.
type Site struct {
	Layer  onnx.Layer // name, operator, depth, shape and axes of what will be fed
	Layout Layout     // how the samples are ordered, blocked and grouped
	// Classes holds the names of the model's classes, or their numbers where they have no names. A
	// prediction has len(Classes) values. Nil where the model's output is not a score for each
	// class.
	Classes []string
	// PerSample says that the transformation is drawn anew for each sample.
	PerSample bool
	// KeepSamples asks for per-sample values (samples: true); see Sampler.
	KeepSamples bool
	// Budget is the bytes that the accumulator may hold; 0: no bound. To stay within it, the
	// accumulator omits optional parts, such as the groups of a jackknife, and its scores have a
	// warning.
	Budget int64
	// Store is storage outside of the budget for data that the accumulator needs only at the end;
	// nil: none. It is empty when the accumulator is created. Serialised states include the stored
	// data.
	Store Store
	// Key seeds the random draws of the accumulator.
	Key Key
}

// A Store is storage outside of memory, usually a file, that several accumulators use at the same
// time.
type Store interface {
	io.ReaderAt
	io.WriterAt
	// Reserve reserves n bytes for the caller and returns their offset.
	Reserve(n int64) (at int64)
}

// A Key seeds a random draw, together with a sample's index and the purpose of the draw.
type Key struct {
	Seed      uint64
	Data      string
	Transform string
	Trial     int
}

// A Layout describes the order in which a run reads its samples: a random permutation that is
// divided into blocks. The place of a sample is its index in that order. Blocks are assigned to
// groups in turn. Shards consist of whole blocks, and pairs for a null are shuffled within blocks.
// A jackknife leaves out a group at a time. A layout depends on the study alone.
type Layout struct {
	N      int // samples
	Block  int // samples in a block; the last may have fewer
	Groups int // groups, at most MaxGroups
}

// MaxGroups is the number of jackknife groups where there are enough samples.
const MaxGroups = 20

// NewLayout returns the layout of n samples. A block has 32 samples, or fewer where n is small, so
// that there are blocks for all groups.
func NewLayout(n int) Layout {
	block := min(32, max(2, n/MaxGroups))
	blocks := (n + block - 1) / block
	return Layout{N: n, Block: block, Groups: max(1, min(MaxGroups, blocks))}
}

// Blocks returns the number of blocks.
func (l Layout) Blocks() int { return (l.N + l.Block - 1) / l.Block }

// Group returns the jackknife group of the sample at a place.
func (l Layout) Group(place int) int { return place / l.Block % l.Groups }

// A Batch holds one layer's activations on the views of b samples. The tensors are valid during
// Update only. Places ascend. The samples of a block come in order, in one batch or in several.
type Batch struct {
	Place []int         // places in the layout
	Index []int         // indices in the data set
	Label []int         // labels, NoLabel where there is none
	Clean tensor.Tensor // b x ...: the layer on x; for Needs.Prediction log-probabilities (natural), b x classes
	Moved tensor.Tensor // the same on T(x); empty unless Needs.Moved, see also Needs.CleanServes
}

// An Accumulator gathers sufficient statistics. Update and Merge may be called in any order that
// keeps each block's samples in order; the scores agree to rounding. After an error from either the
// accumulator must not be used.
type Accumulator interface {
	Update(b *Batch) error
	// Merge adds the state of another accumulator of the same site, which has seen other blocks.
	Merge(other Accumulator) error
	// Scores computes the statistics. It does not change the state.
	Scores() ([]Score, error)
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// A StateWriter is an Accumulator whose serialised state may be too large for memory.
type StateWriter interface {
	// WriteState writes the bytes that MarshalBinary returns.
	WriteState(to io.Writer) error
}

// NonFinite is the error of activations that hold NaN or infinity. The caller adds the layer's
// name.
type NonFinite struct {
	View  string // "clean" or "moved"
	Index int    // of the first sample concerned
	Name  string // of that sample; the caller adds it
}

func (e *NonFinite) Error() string {
	return fmt.Sprintf("NaN or infinity in the activations of sample %s (%s view)", sampleName(e.Index, e.Name), e.View)
}

func sampleName(index int, name string) string {
	if name == "" {
		return fmt.Sprint(index)
	}
	return fmt.Sprintf("%d, %s", index, name)
}

// ErrTooFew is returned by Scores if there were too few samples.
var ErrTooFew = errors.New("too few samples")
