package plan

import (
	"encoding"
	"errors"
	"fmt"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

// A Task is one accumulator's work in a cell: a measure at a layer, or a comparison of a grid of
// layers.
type Task struct {
	target
	Cell     *Cell
	cost     int64 // bytes that the accumulator may hold
	Borrowed int64 // bytes that it borrows while it is fed
	FullCost int64 // bytes that it may hold without a store

	Seen   int         // places from 0 that need not be fed again
	Saved  int         // the same of its state in the run folder; 0 where there is none
	Scored *TaskScores // set once the task is finished
}

// A target is what a task measures. Everything that differs between measures and comparisons is in
// it and in its accumulators.
type target interface {
	Name() string                              // tells the task from others of its cell
	Depth() int                                // by which tasks are sorted; scores.NoDepth for what is no layer
	Readings() []Reading                       // the tensors that its accumulator is fed with, in order
	Open(s measure.Store) (Accumulator, error) // an empty accumulator, with a store or without (nil)
	LayerCount() int                           // how many layers, or pairs of layers, get scores
	depends() []string                         // what the scores depend on besides what the cell says: layers and their axes
	where(err error) string                    // what of which model an error of the accumulator concerns
}

// An Accumulator gathers what a task needs.
type Accumulator interface {
	Feed(at SampleIDs, z []tensor.Tensor) error // z: b x ... for each of the target's readings
	Join(other Accumulator) error
	Finish() (*TaskScores, error)
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// SampleIDs identify the samples of a batch.
type SampleIDs struct {
	Place []int // in the order of the layout
	Index []int // in the source
	Label []int
}

// A Reading is a tensor that a pass reads: a layer of a model, or the log-probabilities that it
// predicts, on x or on T(x).
type Reading struct {
	Model *Model
	Layer onnx.Layer // the zero Layer: log-probabilities
	Moved bool
}

// IsPrediction reports whether the reading is of log-probabilities.
func (r Reading) IsPrediction() bool { return r.Layer.Name == "" }

// TaskScores is a task's outcome.
type TaskScores struct {
	Layers  []scores.Layer
	Samples []measure.SampleScore // where the study keeps them
}

// FirstLayer is where the task stands, for the record of its failure: a layer, or the first of a
// grid; "" for a prediction.
func (t *Task) FirstLayer() string {
	if r := t.Readings(); len(r) > 0 && t.LayerCount() == 1 {
		return r[0].Layer.Name
	}
	return ""
}

// Explain says where in the study an accumulator's error arose.
func (t *Task) Explain(err error) error {
	where := fmt.Sprintf("%s on %s", t.where(err), t.Cell.Data.Entry.Name)
	var bad *measure.NonFinite
	var badIn *measure.NonFiniteIn
	if (errors.As(err, &bad) || errors.As(err, &badIn)) && t.Cell.View.Name != "" {
		where += " under " + t.Cell.View.Name
	}
	return fmt.Errorf("%s: %w", where, err)
}

// Compute computes a task's scores.
func (t *Task) Compute(acc Accumulator) (*TaskScores, error) {
	out, err := acc.Finish()
	if err != nil {
		return nil, t.Explain(err)
	}
	return out, nil
}

// A siteTarget is a measure at a layer, or of the prediction.
type siteTarget struct {
	measure measure.Measure
	model   *Model
	site    measure.Site
	moved   bool // the cell's view moves something
}

func (s *siteTarget) Name() string    { return s.site.Layer.Name }
func (s *siteTarget) Depth() int      { return s.site.Layer.Depth }
func (s *siteTarget) LayerCount() int { return 1 }

func (s *siteTarget) depends() []string {
	return []string{s.site.Layer.Name + " " + string(s.site.Layer.Axes)}
}

func (s *siteTarget) Readings() []Reading {
	clean := Reading{Model: s.model}
	if !s.measure.Needs().Prediction {
		clean.Layer = s.site.Layer
	}
	if !s.moved {
		return []Reading{clean}
	}
	moved := clean
	moved.Moved = true
	return []Reading{clean, moved}
}

func (s *siteTarget) Open(store measure.Store) (Accumulator, error) {
	site := s.site
	site.Store = store
	acc, err := s.measure.New(site)
	return &siteAccumulator{acc, s}, err
}

func (s *siteTarget) where(error) string {
	if s.site.Layer.Name == "" {
		return fmt.Sprintf("%s of model %s", s.measure.Name(), s.model.Entry.Name)
	}
	return fmt.Sprintf("layer %s of model %s", s.site.Layer.Name, s.model.Entry.Name)
}

type siteAccumulator struct {
	measure.Accumulator
	target *siteTarget
}

func (a *siteAccumulator) Feed(at SampleIDs, z []tensor.Tensor) error {
	b := measure.Batch{Place: at.Place, Index: at.Index, Label: at.Label, Clean: z[0]}
	if len(z) > 1 {
		b.Moved = z[1]
	}
	return a.Update(&b)
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
	out := &TaskScores{Layers: []scores.Layer{{Name: site.Layer.Name, Depth: site.Layer.Depth, Scores: s}}}
	if sampler, ok := a.Accumulator.(measure.Sampler); ok && site.KeepSamples {
		out.Samples = sampler.Samples()
	}
	return out, nil
}

// StateWriter is the accumulator of a measure that writes its state piece by piece; nil where it
// does not.
func StateWriter(acc Accumulator) measure.StateWriter {
	if site, ok := acc.(*siteAccumulator); ok {
		if large, ok := site.Accumulator.(measure.StateWriter); ok {
			return large
		}
	}
	return nil
}

// ScoredLayer is the layer that a measure's task is about.
func (t *Task) ScoredLayer() onnx.Layer {
	if s, ok := t.target.(*siteTarget); ok {
		return s.site.Layer
	}
	return onnx.Layer{}
}
