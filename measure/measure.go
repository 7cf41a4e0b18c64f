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

// A Method is a Measure, a Comparison or a procedure.Procedure with its settings, immutable.
type Method interface {
	// Name returns the name in study files and in scores, for instance "seis".
	Name() string
	// Descriptor describes the measure and its statistics.
	Descriptor() Descriptor
	// Version is increased when a change of the code changes scores: finished cells of an older
	// version are computed again.
	Version() int
	// Settings returns what the scores depend on, as a value that encodes to canonical JSON.
	Settings() any
}

// A Measure computes statistics of how a layer's activations, or a model's predictions, change
// under a transformation.
type Measure interface {
	Method
	// Needs returns the input that accumulators need.
	Needs() Needs
	// Skip returns why the site cannot be measured, or "".
	Skip(s Site) string
	// Cost returns an upper bound on the memory of an accumulator of the site, in bytes.
	Cost(s Site) int64
	// New returns an empty accumulator for the site.
	New(s Site) (Accumulator, error)
}

// A Borrower is a Measure whose accumulators share memory during Update, once for each core.
type Borrower interface {
	// Borrowed returns an upper bound on that memory in bytes, which Cost excludes.
	Borrowed(s Site) int64
}

// Needs describes the input that the accumulators of a measure need.
type Needs struct {
	// Truth asks for the labelled boxes or masks of the samples (Site.Truth).
	Truth bool
	// Decoded asks for the decoded output (Site.Output), with one accumulator for each model.
	Decoded bool
	// Prediction asks for class scores, with one accumulator for each model. Without it and Decoded
	// there is one for each layer.
	Prediction  bool
	Labels      bool // labels of the samples
	Transformed bool // the activations on T(x), in addition to those on x
	// TransformOptional reports whether the measure also works without transformations. Then
	// Batch.Transformed is empty, and statistics that need it have no scores.
	TransformOptional bool
	// OtherModel reports whether the measure compares the predictions or decoded outputs of two
	// models on the same inputs. Batch.Clean is of the first and Batch.Transformed of the second,
	// with the same order of classes. Needs Prediction or Decoded.
	OtherModel bool
	// OtherLayers reports whether the measure can also compare layers of two models on the same
	// inputs. Batch.Clean is of the first and Batch.Transformed of the second.
	OtherLayers bool
}

// NoLabel is the label of a sample that has none.
const NoLabel = -1

// A Site specifies what an accumulator measures.
type Site struct {
	Layer  tensor.Layer // name, operator, depth, shape and axes of the activations
	Layout Layout       // how the samples are ordered, blocked and grouped
	// Classes holds the names or numbers of the model's classes, len(Classes) values of a
	// prediction. Nil: none.
	Classes []string
	// Output describes the decoded output, which the activations are for Needs.Decoded; else nil.
	Output *decoded.Format
	// Truth describes the labelled boxes or masks, for Needs.Truth.
	Truth Truth
	// PerSample reports whether the transformation's parameter is drawn separately for each sample.
	PerSample bool
	// Motion draws what T does to positions; nil: there is no T, or the data are ready-made pairs.
	Motion func(r *rand.Rand) Motion
	// KeepSamples asks for per-sample values (samples: true); see Sampler.
	KeepSamples bool
	// KeepBelow limits them to samples whose place is below it; 0: all.
	KeepBelow int
	// Project is a number of samples, those at the first places. For these, projections of x and
	// T(x) to the plane of their first two principal components are stored as per-sample values; 0:
	// none.
	Project int
	// Budget bounds the accumulator's memory in bytes; 0: no bound. To stay within it, it omits
	// optional parts, such as jackknife groups, with a warning.
	Budget int64
	// Store is storage, at first empty, for data that are needed only at the end; nil: none.
	// Serialised states include them.
	Store Store
	// Key seeds the random draws of the accumulator.
	Key Key
}

// Truth describes the labelled boxes or masks of data.
type Truth struct {
	Masks   bool  // the data have masks, else boxes
	Classes []int // the model's class of each class of the data, -1: none; nil: they are the same
}

// A Store is storage outside of memory, usually a file; accumulators may use it concurrently.
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
// divided into blocks. Block i is in jackknife group i mod Groups. Shards and the shuffled pairs of
// a null keep to whole blocks. A layout depends on the study only.
type Layout struct {
	N      int // samples
	Block  int // samples in a block; the last may have fewer
	Groups int // jackknife groups, at most MaxGroups
}

// MaxGroups is the number of jackknife groups if there are enough samples.
const MaxGroups = 20

// NewLayout returns the layout of n samples, in blocks of 32 or fewer, so that every group has one.
func NewLayout(n int) Layout {
	block := min(32, max(2, n/MaxGroups))
	blocks := (n + block - 1) / block
	return Layout{N: n, Block: block, Groups: max(1, min(MaxGroups, blocks))}
}

// Blocks returns the number of blocks.
func (l Layout) Blocks() int { return (l.N + l.Block - 1) / l.Block }

// Group returns the jackknife group of the sample at a place.
func (l Layout) Group(place int) int { return place / l.Block % l.Groups }

// A Batch holds one layer's activations on b samples x and on T(x), valid during Update only.
// Places ascend. A block's samples are in order, in one batch or several.
type Batch struct {
	Place []int // positions of the samples in the layout's order
	Index []int // indices of the samples in the data set
	Label []int // labels; NoLabel: none
	// Clean holds activations on x, b x Layer.Shape. For Needs.Prediction it holds natural
	// logarithms of probabilities, b x classes; for Needs.Decoded, b x Site.Output.Shape().
	Clean tensor.Tensor
	// Transformed holds the same on T(x), if Needs.Transformed asks for it.
	Transformed tensor.Tensor
	// Reduced, if not empty, replaces Clean and Transformed by values of a Reduction, b x Width.
	// Each block is then in one batch.
	Reduced tensor.Tensor
	// Truth holds, for Needs.Truth, the labelled boxes or masks.
	Truth []*decoded.Truth
	// Motions holds what each sample's T does to positions. It is empty without Site.Motion.
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

// A NonFinite is the error for NaN or infinity in activations.
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
