// Package measure says what a measure is: what it needs, how it is fed batch by batch, how the states of parts are
// merged, and what a score carries.
//
// A measure that can be an accumulator is one. It keeps sufficient statistics of fixed size, so memory does not
// grow with the data; it can be merged, so shards and machines can share the work; and it can be serialised,
// so a stopped run resumes. The families of measures are the packages beneath this one.
//
//	Measure       one layer's activations on x, and on T(x): an Accumulator for each layer
//	Comparison    two representations of the same inputs: a GridAccumulator for layers by layers
//	procedure     what works in steps on samples that it holds: see package measure/procedure
package measure

import (
	"encoding"
	"errors"
	"fmt"
	"io"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Method is what a study can name under measures: a Measure, a Comparison or a procedure. It is immutable: its
// settings are fixed when it is made.
type Method interface {
	// Name is the name in study files and in scores, for instance "seis".
	Name() string
	// Descriptor describes the measure and its statistics to readers of the scores. Its name is Name.
	Descriptor() Descriptor
	// Version changes when the same data would give other scores; finished cells of an older version are redone.
	Version() int
	// Settings are what the scores depend on besides the data, in a form that encodes to canonical JSON.
	Settings() any
}

// A Measure computes statistics of how a layer's activations, or a model's predictions, answer to a transformation.
type Measure interface {
	Method
	// Needs says what to feed.
	Needs() Needs
	// Skip returns why the site cannot be measured (a layer without space, a model without classes), or "".
	Skip(s Site) string
	// Cost is an upper bound on the bytes that an accumulator of the site holds.
	Cost(s Site) int64
	// New returns an empty accumulator for the site.
	New(s Site) (Accumulator, error)
}

// A Borrower is a Measure whose accumulators take memory from a pool while they are fed and give it back: it is there once for each
// core that feeds them, and not for each accumulator.
type Borrower interface {
	// Borrowed is an upper bound on the bytes that an accumulator of the site borrows, which Cost leaves out.
	Borrowed(s Site) int64
}

// Needs is what a measure asks to be fed.
type Needs struct {
	Prediction bool // the class scores of the model's output, one accumulator for a cell; else every chosen layer, one accumulator each
	Labels     bool // samples must carry labels
	Moved      bool // the view under the transformation; else the clean view alone serves
	PerTrial   bool // wants one draw of the transformation for a whole trial
	// CleanServes says, beside Moved, that the measure has something to say in a study without transformations too:
	// then Batch.Moved is empty, and only what needs no moved view is scored. Accuracy is so.
	CleanServes bool
}

// A Site is where an accumulator sits: a layer of a model on some data under some transformation.
type Site struct {
	Layer   onnx.Layer // name, operator, depth, shape and axes of what will be fed
	Layout  Layout     // how the samples are ordered, blocked and grouped
	Classes []string   // names of the model's classes, numbers where nobody names them: a prediction has len(Classes) values. Nil where the output is no classes' scores
	// PerSample says that the transformation is drawn anew for each sample.
	PerSample bool
	// KeepSamples asks for per-sample values too (samples: true); see Sampler.
	KeepSamples bool
	// Budget is the bytes that the accumulator may hold; 0: no bound. It gives up what is optional, such as the groups
	// of a jackknife, to stay within it, and then warns of it in its scores.
	Budget int64
	// Store is where the accumulator may put what it wants only at the end, beyond its budget; nil: nowhere. It holds nothing when the
	// accumulator is made. States are whole without it.
	Store Store
	// Key is what random draws inside the accumulator are keyed by.
	Key Key
}

// A Store is room outside memory, a file as a rule, for accumulators that work side by side.
type Store interface {
	io.ReaderAt
	io.WriterAt
	// Reserve sets n bytes aside, for who asks alone, and returns where they begin.
	Reserve(n int64) (at int64)
}

// A Key tells one random draw from all others, together with a sample's index and the purpose of the draw.
type Key struct {
	Seed      uint64
	Data      string
	Transform string
	Trial     int
}

// A Layout is the order in which a run walks through its samples: a keyed permutation, cut into blocks, the blocks
// dealt to groups. It depends on the study alone. Blocks are what a shard consists of, and what partners
// for a null are drawn within; groups are what a jackknife leaves out.
type Layout struct {
	N      int // samples
	Block  int // samples in a block; the last may have fewer
	Groups int // groups, at most MaxGroups
}

// MaxGroups is the number of jackknife groups where there are samples enough.
const MaxGroups = 20

// NewLayout lays out n samples: blocks of 32, or fewer where n is small, so that there are blocks for all groups.
func NewLayout(n int) Layout {
	block := min(32, max(2, n/MaxGroups))
	blocks := (n + block - 1) / block
	return Layout{N: n, Block: block, Groups: max(1, min(MaxGroups, blocks))}
}

// Blocks is the number of blocks.
func (l Layout) Blocks() int { return (l.N + l.Block - 1) / l.Block }

// Group is the jackknife group of the sample at a place of the order.
func (l Layout) Group(place int) int { return place / l.Block % l.Groups }

// A Batch is what an accumulator is fed: one layer's activations on the views of some samples. The tensors are valid
// during the call only. After an error from Update or Merge the accumulator is of no further use. Places ascend, and a block's samples arrive in order, in one batch or in several.
type Batch struct {
	Place []int         // places in the order, see Layout
	Index []int         // indices in the source
	Label []int         // labels, NoLabel where there is none
	Clean tensor.Tensor // b x ...: the layer on x; for Needs.Prediction log-probabilities (natural), b x classes
	Moved tensor.Tensor // the same on T(x); empty unless Needs.Moved, see also Needs.CleanServes
}

// An Accumulator gathers sufficient statistics. Update and Merge may come in any interleaving that keeps each
// block's samples in order; the scores agree to rounding.
type Accumulator interface {
	Update(b *Batch) error
	// Merge adds the state of another accumulator of the same site, which has seen other blocks.
	Merge(other Accumulator) error
	// Scores computes the statistics. It leaves the state as it is.
	Scores() ([]Score, error)
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// A StateWriter is an Accumulator whose state may be too large to be held in memory beside it.
type StateWriter interface {
	// WriteState writes what MarshalBinary returns.
	WriteState(to io.Writer) error
}

// NonFinite is the error of activations that hold NaN or infinity. The caller adds the layer's name.
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

// ErrTooFew is returned by Scores where the samples seen are too few for the statistic.
var ErrTooFew = errors.New("too few samples")
