// Package measure defines the interfaces of measures of neural network activations, and their
// scores.
//
// Most measures are accumulators of sufficient statistics of fixed size, so memory does not grow
// with the data. Their states can be merged, so that shards and machines divide the work, and
// serialised, so that a stopped run can be resumed. Each family of measures is a package below this
// one. There are three kinds:
//
//	Measure       one layer's activations on x and on T(x): an Accumulator for each layer
//	Comparison    two representations of the same inputs: a GridAccumulator for many pairs of layers
//	Procedure     work in steps on stored samples, such as training: see package internal/procedure
//
// These packages use some terms. x is a sample, that is, one input of a model, and T a
// transformation. A view is one version of a sample: clean (x) or transformed (T(x)). A study names
// data, models, transformations and measures. A trial is one of several repetitions of all random
// draws of a study. A cell is one unit of its work: one measure of one model (or pair of models) on
// one data set, under one transformation value, in one trial. A shard is a part of the samples that
// one process measures. A factor is a known property of samples, such as hue. A unit is one value
// of a layer. The null of a score is the value of its statistic that chance alone gives, for
// example on shuffled pairs: x of one sample with T(x) of another. The samples of a study are read
// in a random order, and divided into blocks and groups (see Layout). A jackknife computes an
// interval from the values of a statistic without one of the groups. A site is what one accumulator
// measures, such as a layer of a model under a transformation (see Site).
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
	"math/rand/v2"

	"github.com/noether-ml/noether/measure/decoded"
	"github.com/noether-ml/noether/tensor"
)

// A Method is a Measure, a Comparison or a procedure.Procedure with its settings: an entry under
// measures in a study file. It is immutable.
type Method interface {
	// Name returns the name in study files and in scores, for instance "seis".
	Name() string
	// Descriptor returns the description of the measure and its statistics. Its name is Name.
	Descriptor() Descriptor
	// Version returns a number that is increased when a change of the code changes scores. Finished
	// cells of an older version are computed again.
	Version() int
	// Settings returns the settings that the scores depend on, as a value that encodes to canonical
	// JSON.
	Settings() any
}

// A Measure computes statistics of how a layer's activations, or a model's predictions, change
// under a transformation.
type Measure interface {
	Method
	// Needs returns the input that accumulators need.
	Needs() Needs
	// Skip returns why the site cannot be measured (for example, a layer without spatial axes, or a
	// model without classes), or "".
	Skip(s Site) string
	// Cost returns an upper bound on the memory of an accumulator of the site, in bytes.
	Cost(s Site) int64
	// New returns an empty accumulator for the site.
	New(s Site) (Accumulator, error)
}

// A Borrower is a Measure whose accumulators use memory from a shared pool during Update. That
// memory is needed once for each core, not for each accumulator.
type Borrower interface {
	// Borrowed returns an upper bound on the memory that an accumulator of the site uses from the
	// pool, in bytes. Cost does not include it.
	Borrowed(s Site) int64
}

// Needs describes the input that the accumulators of a measure need.
type Needs struct {
	// Truth asks for the labelled boxes or masks of the samples (Site.Truth).
	Truth bool
	// Decoded asks for the model's decoded output (Site.Output), such as boxes or a class map.
	// There is then one accumulator for each model.
	Decoded bool
	// Prediction asks for the model's class scores; there is then one accumulator for each model.
	// If neither Decoded nor Prediction is set, there is one accumulator for each chosen layer.
	Prediction  bool
	Labels      bool // labels of the samples
	Transformed bool // the activations on T(x), in addition to those on x
	// TransformOptional reports whether the measure, for example accuracy, can also be used without
	// transformations. Then Batch.Transformed is empty, and statistics that need it have no scores.
	TransformOptional bool
	// OtherModel reports whether the measure compares the predictions of two models on the same
	// inputs, clean or both transformed. Batch.Clean is then of the first model and
	// Batch.Transformed of the second, with the classes in the same order. Needs Prediction.
	OtherModel bool
}

// NoLabel is the label of a sample that has none.
const NoLabel = -1

// A Site specifies what an accumulator measures: a layer of a model on some data under some
// transformation.
type Site struct {
	Layer  tensor.Layer // name, operator, depth, shape and axes of the activations
	Layout Layout       // how the samples are ordered, blocked and grouped
	// Classes holds the names of the model's classes, or their numbers if they have no names. A
	// prediction has len(Classes) values. Nil: the model has no class scores.
	Classes []string
	// Output describes the decoded output, which the activations are for Needs.Decoded; else nil.
	Output *decoded.Format
	// Truth describes the labelled boxes or masks, for Needs.Truth.
	Truth Truth
	// PerSample reports whether the parameter of the transformation is drawn separately for each
	// sample.
	PerSample bool
	// Motion draws what the transformation T does to positions; nil: there is no T, or the data are
	// pairs of x and T(x), so that it is not known.
	Motion func(r *rand.Rand) Motion
	// KeepSamples asks for per-sample values (samples: true); see Sampler.
	KeepSamples bool
	// KeepBelow limits the per-sample values that are stored to samples whose place (see Layout) is
	// below it; 0: all samples.
	KeepBelow int
	// Project is a number of samples, those at the first places of the Layout. For these, the
	// accumulator also stores, as per-sample values, the projection of the activations on x and on
	// T(x) to the plane of their first two principal components; 0: none.
	Project int
	// Budget is the memory that the accumulator may use, in bytes; 0: no bound. To stay within it,
	// the accumulator omits optional parts, such as the groups of a jackknife, and its scores have
	// a warning.
	Budget int64
	// Store is storage outside of the budget for data that the accumulator needs only at the end;
	// nil: none. It is empty when the accumulator is created. Serialised states include the stored
	// data.
	Store Store
	// Key seeds the random draws of the accumulator.
	Key Key
}

// Truth describes the labelled boxes or masks of data.
type Truth struct {
	Masks   bool  // the data have masks, else boxes
	Classes []int // the model's class of each class of the data, -1: none; nil: they are the same
}

// A Store is storage outside of memory, usually a file, that several accumulators may use
// concurrently.
type Store interface {
	io.ReaderAt
	io.WriterAt
	// Reserve reserves n bytes for the caller and returns their offset.
	Reserve(n int64) (at int64)
}

// A Key seeds a random draw, together with a sample's index and the purpose of the draw.
type Key struct {
	Seed      uint64 // of the study
	Data      string // name of the data
	Transform string // name of the transformation
	Trial     int    // number of the trial
}

// A Layout describes the order in which a run reads its samples: a random permutation that is
// divided into blocks. The place of a sample is its position in that order, counted from 0. Block i
// is in jackknife group i mod Groups. Shards consist of whole blocks, and the pairs of a null are
// shuffled within blocks. A layout depends on the study only.
type Layout struct {
	N      int // samples
	Block  int // samples in a block; the last may have fewer
	Groups int // jackknife groups, at most MaxGroups
}

// MaxGroups is the number of jackknife groups if there are enough samples.
const MaxGroups = 20

// NewLayout returns the layout of n samples. A block has 32 samples, or fewer if n is small, so
// that every group has a block.
func NewLayout(n int) Layout {
	block := min(32, max(2, n/MaxGroups))
	blocks := (n + block - 1) / block
	return Layout{N: n, Block: block, Groups: max(1, min(MaxGroups, blocks))}
}

// Blocks returns the number of blocks.
func (l Layout) Blocks() int { return (l.N + l.Block - 1) / l.Block }

// Group returns the jackknife group of the sample at a place, that is, at a position in the order.
func (l Layout) Group(place int) int { return place / l.Block % l.Groups }

// A Batch holds one layer's activations on b samples x and on T(x). The tensors are valid during
// Update only. Places are ascending. The samples of a block are in order, in one batch or in
// several.
type Batch struct {
	Place []int // positions of the samples in the layout's order
	Index []int // indices of the samples in the data set
	Label []int // labels; NoLabel: none
	// Clean holds the activations on x, b x Layer.Shape. For Needs.Prediction it holds natural
	// logarithms of probabilities, b x classes; for Needs.Decoded, b x Site.Output.Shape().
	Clean tensor.Tensor
	// Transformed holds the same on T(x). It is empty unless Needs.Transformed is set; see also
	// Needs.TransformOptional.
	Transformed tensor.Tensor
	// Reduced holds the values of a Reduction, b x Width, in place of Clean and Transformed, which
	// are empty then; usually it is empty. The samples of each block are in one batch.
	Reduced tensor.Tensor
	// Truth holds, for Needs.Truth, the labelled boxes or masks.
	Truth []*decoded.Truth
	// Motions holds, for each sample, what T with the parameters drawn for it does to positions. It
	// is empty if there is no Site.Motion.
	Motions []Motion
}

// An Accumulator accumulates sufficient statistics. Update and Merge may be called in any order in
// which the samples of each block are in order; the scores agree up to rounding. After an error
// from either the accumulator must not be used.
type Accumulator interface {
	// Update adds a batch of samples.
	Update(b *Batch) error
	// Merge adds the state of another accumulator of the same site, for other blocks.
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

// A NonFinite is the error for NaN or infinity in activations. The caller of the accumulator adds
// the name of the layer.
type NonFinite struct {
	View  string // "clean" or "transformed"; "first" or "second" of two models, which the caller names
	Index int    // index in the data set of the first such sample
	Name  string // name of that sample; the caller adds it
}

func (e *NonFinite) Error() string {
	text := "NaN or infinity in the activations of sample " + sampleName(e.Index, e.Name)
	if e.View == "first" || e.View == "second" {
		return text
	}
	return fmt.Sprintf("%s (%s view)", text, e.View)
}

func sampleName(index int, name string) string {
	if name == "" {
		return fmt.Sprint(index)
	}
	return fmt.Sprintf("%d, %s", index, name)
}

// ErrTooFew is returned by Scores if there were too few samples.
var ErrTooFew = errors.New("too few samples")
