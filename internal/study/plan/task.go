package plan

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/parity"
	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A Task is the part of a cell's work that one accumulator does: a layer, a prediction, or a grid.
type Task struct {
	target
	Cell     *Cell
	cost     int64 // bytes of memory that the accumulator may hold, without those in a measure.Store (a file) if there is one
	Borrowed int64 // further bytes that the accumulator uses while it is fed
	FullCost int64 // bytes of memory that the accumulator may hold without a store

	Fed         int         // number of samples, from the first of the random order, that the task has processed
	Saved       int         // value of Fed in the state, the accumulator saved in the run folder; 0 if there is none
	Scored      *TaskScores // set when the task is finished
	SavedScores bool        // the state in the run folder holds Scored
	NonFinite   bool        // its activations hold NaN or infinity, so its scores are undefined

	shape string // see Shape
}

// DropNonFinite gives a task of one layer undefined scores (NaN, with err as warning) if err says
// that its activations hold NaN or infinity while another layer is still measured. It reports
// whether it did.
func (t *Task) DropNonFinite(err error) bool {
	var bad *measure.NonFinite
	if t.ScoredLayer().Name == "" || !errors.As(err, &bad) || t.IsLast() {
		return false
	}
	layer := t.ScoredLayer()
	out := scores.Layer{Name: layer.Name, Depth: layer.Depth, Other: t.target.(*siteTarget).otherLayer()}
	for _, s := range t.Cell.Method.Descriptor().Statistics {
		score := measure.Plain(s.Name, math.NaN(), 0)
		score.Warnings = []string{bad.Error()}
		out.Scores = append(out.Scores, score)
	}
	t.NonFinite, t.Scored = true, &TaskScores{Layers: []scores.Layer{out}}
	return true
}

// IsLast reports whether all other tasks of the cell were dropped for NaN or infinity.
func (t *Task) IsLast() bool {
	return !slices.ContainsFunc(t.Cell.Tasks, func(o *Task) bool { return o != t && !o.NonFinite })
}

// NonFiniteLayer returns the model and layer whose activations hold NaN or infinity according to
// err.
func (t *Task) NonFiniteLayer(err error) (model, layer string) {
	var bad *measure.NonFiniteIn
	if g, ok := t.target.(*gridTarget); ok && errors.As(err, &bad) {
		return g.sides[bad.Side].model.Entry.Name, [2][]tensor.Layer{g.grid.A, g.grid.B}[bad.Side][bad.Layer].Name
	}
	var one *measure.NonFinite
	if s, ok := t.target.(*siteTarget); ok && s.pair != nil && errors.As(err, &one) && one.View == "second" {
		return s.other.Entry.Name, s.pair.Other.Name
	}
	return t.Cell.Model.Entry.Name, t.ScoredLayer().Name
}

// HasUnsaved reports whether the task has results that are not saved in the run folder.
func (t *Task) HasUnsaved() bool {
	return t.Scored == nil && t.Fed != t.Saved || t.Scored != nil && !t.SavedScores
}

// Shape identifies tasks that take the same time per sample. It has the memory bound, because a
// measure may use another algorithm on few samples.
func (t *Task) Shape() string {
	if t.shape == "" {
		var layers []string
		for _, r := range t.Readings() {
			layers = append(layers, fmt.Sprint(r.Layer.Shape, r.Layer.Axes))
		}
		t.shape = fmt.Sprint(t.Cell.Method.Name(), spec.CanonicalJSON(t.Cell.Method.Settings()), layers, t.FullCost)
	}
	return t.shape
}

type target interface {
	Name() string                              // unique within the cell
	Depth() int                                // depth of the (first) layer in the graph, by which tasks are sorted; scores.NoDepth for a prediction
	Readings() []Reading                       // tensors that Feed takes, in order
	models() [2]*Model                         // the models of the readings; the second is nil if there is only one
	Open(s measure.Store) (Accumulator, error) // an empty accumulator; s may be nil
	LayerCount() int                           // number of layers, or pairs of layers, with scores
	depends() []string                         // what the cell's key, a hash of all that its scores depend on, must include of it, such as layers and their axes
	where(err error) string                    // names the layer and model in which err, of the accumulator, occurred
}

// An Accumulator computes the scores of a task. Join adds one of a later part of the random order.
type Accumulator interface {
	Feed(at SampleIDs, z []tensor.Tensor) error // z: for each of the target's readings a batch, samples x the shape of its layer
	Join(other Accumulator) error
	Finish() (*TaskScores, error)
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// SampleIDs identify the samples of a batch; each list has one element per sample.
type SampleIDs struct {
	Position []int            // in the random order of the data
	Index    []int            // of the sample in the data set, see dataset.Sample
	Label    []int            // class, or dataset.NoLabel
	Truth    []*dataset.Truth // labelled boxes or masks, in the frame that the task's model gets; empty if the data have none
	Ops      []transform.Op   // transformation of each sample; empty for clean inputs, and for ready-made pairs of clean and transformed samples
}

// A Reading is activations of a layer or log-probabilities, on x or on T(x).
type Reading struct {
	Model       *Model
	Layer       tensor.Layer // the zero Layer stands for log-probabilities
	Transformed bool
}

// IsPrediction reports whether the reading is of log-probabilities.
func (r Reading) IsPrediction() bool { return r.Layer.Name == "" }

// TaskScores are the results of a task.
type TaskScores struct {
	Layers    []scores.Layer
	Samples   []measure.SampleScore // per-sample values, if the study asks for them or for projections of activations to a plane
	NonFinite string                // why all scores are undefined, if the activations of all layers hold NaN or infinity
}

// FirstLayer returns the task's layer, or the first of a pair; "" for predictions and larger grids.
func (t *Task) FirstLayer() string {
	if r := t.Readings(); len(r) > 0 && t.LayerCount() == 1 {
		return r[0].Layer.Name
	}
	return ""
}

// Explain adds layer, model and data to an error, and the transformation to one about NaN or
// infinity.
func (t *Task) Explain(err error) error {
	where := fmt.Sprintf("%s on %s", t.where(err), t.Cell.Data.Entry.Name)
	var bad *measure.NonFinite
	var badIn *measure.NonFiniteIn
	if (errors.As(err, &bad) || errors.As(err, &badIn)) && t.Cell.View.Name != "" {
		where += " under " + t.Cell.View.Name
	}
	return fmt.Errorf("%s: %w", where, err)
}

// Compute returns the task's scores, from its accumulator.
func (t *Task) Compute(acc Accumulator) (*TaskScores, error) {
	out, err := acc.Finish()
	if err != nil {
		return nil, t.Explain(err)
	}
	return out, nil
}

// A siteTarget is the target of a measure at a layer, or of predictions or decoded output.
type siteTarget struct {
	measure     measure.Measure
	model       *Model
	other       *Model        // the second model, where predictions or layers of two are compared; else nil
	pair        *parity.Pair  // the layers of the two models that are compared; else nil
	joint       *jointClasses // the classes that the two models have in common; else nil
	outputs     *jointOutput  // of the decoded outputs of the two models that are compared; else nil
	site        measure.Site
	transformed bool // the cell has a transformation
}

func (s *siteTarget) Name() string {
	if s.pair != nil {
		return s.pair.Original.Name + " and " + s.pair.Other.Name
	}
	return s.site.Layer.Name
}

func (s *siteTarget) Depth() int      { return s.site.Layer.Depth }
func (s *siteTarget) LayerCount() int { return 1 }

func (s *siteTarget) depends() []string {
	if s.pair != nil {
		return slices.Concat(layerLayout(s.pair.Original), layerLayout(s.pair.Other))
	}
	if s.outputs != nil {
		return s.outputs.depends()
	}
	if s.other != nil {
		return s.joint.depends()
	}
	if f := s.site.Output; f != nil {
		return []string{spec.CanonicalJSON(f), spec.CanonicalJSON(s.site.Truth)}
	}
	return layerLayout(s.site.Layer)
}

// layerLayout returns the name and axes of a layer and, if they do not follow from the number of
// tokens, the grid of tokens and the number of tokens before it.
func layerLayout(l tensor.Layer) []string {
	out := []string{l.Name + " " + string(l.Axes)}
	unknown := l
	unknown.Tokens = nil
	known, _ := l.Maps()
	guess, _ := unknown.Maps()
	// Base / Channels is the number of tokens before the grid, such as a class token.
	if !slices.Equal(known.Grid, guess.Grid) || known.Base != guess.Base { // cells with guessed layouts keep the keys of earlier versions
		out = append(out, fmt.Sprint("tokens ", known.Base/max(1, known.Channels), known.Grid))
	}
	return out
}

func (s *siteTarget) Readings() []Reading {
	if s.other != nil {
		out := []Reading{{Model: s.model, Transformed: s.transformed}, {Model: s.other, Transformed: s.transformed}}
		if s.pair != nil {
			out[0].Layer, out[1].Layer = s.pair.Original, s.pair.Other
		}
		if s.outputs != nil {
			out[0].Layer, out[1].Layer = s.model.Net.DecodedLayer(), s.other.Net.DecodedLayer()
		}
		return out
	}
	clean := Reading{Model: s.model}
	switch {
	case s.site.Output != nil:
		clean.Layer = s.model.Net.DecodedLayer()
	case !s.measure.Needs().Prediction:
		clean.Layer = s.site.Layer
	}
	if !s.transformed {
		return []Reading{clean}
	}
	transformed := clean
	transformed.Transformed = true
	return []Reading{clean, transformed}
}

// otherLayer returns the name of the second model's layer; "" if no layers of two are compared.
func (s *siteTarget) otherLayer() string {
	if s.pair == nil {
		return ""
	}
	return s.pair.Other.Name
}

func (s *siteTarget) models() [2]*Model { return [2]*Model{s.model, s.other} }

func (s *siteTarget) Open(store measure.Store) (Accumulator, error) {
	site := s.site
	site.Store = store
	acc, err := s.measure.New(site)
	return &siteAccumulator{Accumulator: acc, target: s}, err
}

func (s *siteTarget) where(err error) string {
	var bad *measure.NonFinite
	switch {
	case s.other == nil:
	case s.pair != nil:
		if errors.As(err, &bad) && bad.View == "second" {
			return fmt.Sprintf("layer %s of model %s", s.pair.Other.Name, s.other.Entry.Name)
		}
	case s.outputs != nil && errors.As(err, &bad):
		return fmt.Sprintf("%s: the decoded output of model %s", s.measure.Name(), map[string]*Model{"first": s.model, "second": s.other}[bad.View].Entry.Name)
	case errors.As(err, &bad) && bad.View == "second": // of the two compared predictions
		return fmt.Sprintf("%s: the prediction of model %s", s.measure.Name(), s.other.Entry.Name)
	case errors.As(err, &bad):
		return fmt.Sprintf("%s: the prediction of model %s", s.measure.Name(), s.model.Entry.Name)
	default:
		return fmt.Sprintf("%s of models %s and %s", s.measure.Name(), s.model.Entry.Name, s.other.Entry.Name)
	}
	if s.site.Layer.Name == "" {
		return fmt.Sprintf("%s of model %s", s.measure.Name(), s.model.Entry.Name)
	}
	return fmt.Sprintf("layer %s of model %s", s.site.Layer.Name, s.model.Entry.Name)
}

type siteAccumulator struct {
	measure.Accumulator
	target *siteTarget
	turned []float32 // memory for the other model's layer in the order of axes of the first
}

func (a *siteAccumulator) Feed(at SampleIDs, z []tensor.Tensor) error {
	b := measure.Batch{Place: at.Position, Index: at.Index, Label: at.Label, Clean: z[0], Truth: at.Truth}
	for _, op := range at.Ops {
		b.Motions = append(b.Motions, transform.MotionOf(op))
	}
	if len(z) > 1 {
		b.Transformed = z[1]
	}
	if joint := a.target.joint; joint != nil { // the predictions of two models take the place of clean and transformed
		b.Clean, b.Transformed, b.Label = joint.prediction(0, z[0]), joint.prediction(1, z[1]), make([]int, len(at.Label))
		for i, l := range at.Label {
			b.Label[i] = joint.label(l)
		}
	}
	pair, outputs := a.target.pair, a.target.outputs
	switch {
	case outputs != nil:
		b.Clean, b.Transformed = outputs.align(0, z[0]), outputs.align(1, z[1])
	case pair == nil:
		return a.Update(&b)
	default:
		b.Transformed = pair.Align(a.turned, z[1])
		if pair.Turned() {
			a.turned = b.Transformed.Data
		}
	}
	err := a.Update(&b)
	var bad *measure.NonFinite
	if errors.As(err, &bad) {
		bad.View = map[string]string{"clean": "first", "transformed": "second"}[bad.View]
	}
	return err
}

func (a *siteAccumulator) Join(other Accumulator) error {
	return a.Merge(other.(*siteAccumulator).Accumulator)
}

func (a *siteAccumulator) Finish() (*TaskScores, error) {
	s, err := a.Scores()
	if err != nil {
		return nil, err
	}
	site := &a.target.site
	out := &TaskScores{Layers: []scores.Layer{{Name: site.Layer.Name, Depth: site.Layer.Depth, Other: a.target.otherLayer(), Scores: s}}}
	if sampler, ok := a.Accumulator.(measure.Sampler); ok && (site.KeepSamples || site.Project > 0) {
		out.Samples = sampler.Samples()
	}
	return out, nil
}

// Label converts a label to that of per-sample values: for two models the position among their
// common classes.
func (t *Task) Label(l int) int {
	if s, ok := t.target.(*siteTarget); ok && s.joint != nil {
		return s.joint.label(l)
	}
	return l
}

// StateWriter returns the accumulator if it can write its state in pieces, else nil.
func StateWriter(acc Accumulator) measure.StateWriter {
	if site, ok := acc.(*siteAccumulator); ok {
		if large, ok := site.Accumulator.(measure.StateWriter); ok {
			return large
		}
	}
	return nil
}

// ScoredLayer returns the layer of a measure's task. For comparisons it is the zero Layer.
func (t *Task) ScoredLayer() tensor.Layer {
	if s, ok := t.target.(*siteTarget); ok {
		return s.site.Layer
	}
	return tensor.Layer{}
}
