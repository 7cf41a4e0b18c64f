// Package paired computes measures whose statistics are means over n samples of a function of two
// vectors: the result z of a model for an input x, and z' for the transformed input T(x).
//
//	statistic = 1/n sum_i f(z_i, z'_i)
//
// A measure supplies the function f and names the values that f returns, the columns, in a Spec.
// The view clean has z, the view transformed z'. This package computes the sums and returns the
// means, each with
//
//   - an interval: Wilson's for proportions, otherwise the delete-group jackknife over the groups
//     of the measure.Layout, clipped to the range of the statistic. Every score has the replicates
//     of the jackknife, its values without each group.
//   - a null: the same mean over shuffled pairs. The clean vector of a sample is paired with the
//     transformed vector of the next sample in its block, and that of the last sample with the
//     transformed vector of the first. The order of the samples is random, so the next sample is a
//     random one. No sample is paired with itself, and every sample is used once on each side. Of
//     an unfinished block, only the first transformed and the latest clean vector are stored. A
//     block with a single sample has no shuffled pairs.
//   - if the settings ask for them, the means for each class of labels, and the values of the
//     columns for each sample.
//
// For instance, the mean absolute difference of a layer of one value:
//
//	m := paired.New(paired.Spec{
//		Descriptor: descriptor, // has the statistic "difference"
//		Version:    1, StateVersion: 1,
//		Needs:      measure.Needs{Transformed: true},
//		Columns:    []paired.Column{{Statistic: "difference", Transformed: true}},
//		Pair: func(out []float64, _ int, clean, transformed []float32) error {
//			out[0] = math.Abs(float64(transformed[0] - clean[0]))
//			return nil
//		},
//	})
package paired

import (
	"errors"
	"slices"
	"sync"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// A Column describes one value that a Spec computes for a pair.
type Column struct {
	Statistic   string // name in scores; "": the column is not scored
	Sample      string // name among per-sample values; "": the column is not stored
	Proportion  bool   // each value is 0 or 1
	Difference  bool   // each value is -1, 0 or 1, the difference of two proportions
	Transformed bool   // needs the transformed view
	Guessed     bool   // random guessing gives 1 / classes; a score has a warning unless its interval lies above that
	// Labelled reports whether the value is NaN without a label, and the column has a score only if
	// all have one.
	Labelled bool
	// Null returns the null from the means of all columns. nil: the mean over shuffled pairs, if
	// the descriptor names a null.
	Null func(means []float64) float64
}

// A Derived is a function of the columns' means, with a delete-group jackknife.
type Derived struct {
	Statistic string
	Factor    string                        // the class that its scores are about (measure.Score); usually empty
	Optional  bool                          // if it is undefined, it has no score
	Shuffled  bool                          // its null is Of, applied to the means over shuffled pairs
	Labelled  bool                          // it uses columns that are Labelled
	Of        func(means []float64) float64 // the statistic; NaN: undefined
	Undefined string                        // the warning if it is undefined and not Optional
	Null      func(means []float64) float64 // the null; nil: none, unless Shuffled
	// Extreme returns the interval if all replicates are equal; nil: one without width.
	Extreme func(means []float64, n int) (low, high float64)
	// Warnings, if set, returns what the means of n samples say against the interval.
	Warnings func(means []float64, n int) []string
}

// A Spec specifies a measure.
type Spec struct {
	// Descriptor has the name of the measure, and the range and the null of each statistic.
	Descriptor measure.Descriptor
	// of the measure's results and of its saved accumulators
	Version, StateVersion int
	Settings              any // see measure.Method
	// Needs says what the measure reads. With Needs.Prediction a row has one value for each class.
	Needs   measure.Needs
	Columns []Column  // the values that Pair or an Action computes, in order
	Derived []Derived // statistics that are computed from the means of Columns
	// Pair computes the columns of one pair, all of out. Without a transformed view, transformed is
	// nil. A *measure.NonFinite error needs no index.
	Pair func(out []float64, label int, clean, transformed []float32) error
	// PairRows, if set, computes what Pair does for several samples, reading each row once. Results
	// must not depend on the division into calls. There may be no Action and no labelled column.
	//
	// own gets the columns of each sample's pair. shuffled, unless nil, gets the columns of the
	// transformed row of each sample with the clean row of the one before, previous for the first;
	// if that is nil, the first has no shuffled pair. It returns false where Pair would return an
	// error.
	PairRows func(own, shuffled []float64, previous, clean, transformed []float32) bool
	// Reduction, if set, computes what Pair does from values of the graph.
	Reduction *Reduction
	// Action, if set, returns the Action that computes the columns at a site in place of Pair.
	Action func(site measure.Site) (Action, error)
	// LeftOut states, for a warning, why an Action leaves out samples.
	LeftOut string
	// Skip, if set, returns why a site cannot be measured, or "".
	Skip func(site measure.Site) string
	// PerClass asks for scores of each class as well, where the site has classes.
	PerClass bool
}

// An Action computes the columns of pairs of tau z and z', in one goroutine at a time.
type Action interface {
	// Len returns the number of values of tau z.
	Len() int
	// Act writes tau z to dst and sets the columns that depend only on z and T. ErrLeftOut: the
	// sample has none.
	Act(dst []float32, out []float64, z []float32, move measure.Motion) error
	// Pair sets the others from tau z and a transformed row, for the null of another sample.
	Pair(out []float64, tauZ, transformed []float32) error
}

// ErrLeftOut is returned by an Action for a sample that has no columns.
var ErrLeftOut = errors.New("the sample is left out")

type method struct {
	spec Spec
	rows sync.Pool // of *[]float32: memory for tau z, needed during Update only
}

// New returns the measure of a spec.
func New(spec Spec) measure.Measure { return &method{spec: spec} }

func (m *method) Name() string                   { return m.spec.Descriptor.Name }
func (m *method) Descriptor() measure.Descriptor { return m.spec.Descriptor }
func (m *method) Version() int                   { return m.spec.Version }
func (m *method) Settings() any                  { return m.spec.Settings }
func (m *method) Needs() measure.Needs           { return m.spec.Needs }

func (m *method) Skip(s measure.Site) string {
	if m.spec.Needs.Prediction && len(s.Classes) < 2 {
		return "the model's output is not a score for each of several classes"
	}
	if m.spec.Skip != nil {
		return m.spec.Skip(s)
	}
	return ""
}

// Borrowed implements measure.Borrower: an Action needs memory for two rows of tau z.
func (m *method) Borrowed(s measure.Site) int64 { return 2 * 4 * m.spec.actionLen(s) }

func (m *method) Cost(s measure.Site) int64 { return m.spec.cost(s) }

func (m *method) New(s measure.Site) (measure.Accumulator, error) {
	a := newAccumulator(&m.spec, s)
	if m.spec.Action == nil {
		return a, nil
	}
	a.rows = &m.rows
	var err error
	a.action, err = m.spec.Action(s)
	return a, err
}

func (s *Spec) actionLen(site measure.Site) int64 {
	if s.Action == nil {
		return 0
	}
	action, err := s.Action(site)
	if err != nil {
		return 0
	}
	return int64(action.Len())
}

func (s *Spec) hasNull() bool {
	return slices.ContainsFunc(s.Descriptor.Statistics, func(d measure.StatisticDescriptor) bool { return d.Null != "" })
}

func (s *Spec) usesLabels() bool {
	return slices.ContainsFunc(s.Columns, func(c Column) bool { return c.Labelled })
}

func (s *Spec) storedColumns() int {
	n := 0
	for _, c := range s.Columns {
		if c.Sample != "" {
			n++
		}
	}
	return n
}

// parts counts the parts with sums of their own: 0 is all samples, 1 + k class k.
func (s *Spec) parts(site measure.Site) int {
	if s.PerClass {
		return 1 + len(site.Classes)
	}
	return 1
}

// projects reports whether measure.Site.Project applies.
func (s *Spec) projects(site measure.Site) bool { return site.Project > 0 && !s.Needs.Prediction }

func (s *Spec) cost(site measure.Site) int64 {
	table := 8 * int64(s.parts(site)*site.Layout.Groups) * int64(1+len(s.Columns))
	width := tensor.Size(site.Layer.Shape)
	if s.Needs.Prediction {
		width = len(site.Classes)
		table += 8 * int64(width)
	}
	cost := table
	if site.KeepSamples {
		n := site.Layout.N
		if site.KeepBelow > 0 {
			n = min(n, site.KeepBelow)
		}
		cost += 2 * 8 * int64(n) * int64(1+s.storedColumns()) // twice: a growing slice is copied
	}
	if s.projects(site) {
		cost += projectionCost(site.Layer, site.Project)
	}
	if s.hasNull() {
		cost += table + 4*int64(width) + 4*max(int64(width), s.actionLen(site))
	}
	return cost
}
