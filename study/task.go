package study

import (
	"encoding"
	"errors"
	"fmt"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/tensor"
)

// A task is one accumulator's work in a cell: a measure at a layer, or a comparison of a grid of layers.
type task struct {
	target
	cell *Cell
	cost int64 // bytes that the accumulator may hold
	loan int64 // bytes that it borrows while it is fed
	full int64 // bytes that it may hold without a store

	seen   int         // places from 0 that need not be fed again
	scored *finished   // set once the task is finished
	stored *stateEntry // where its state stands in the cell's state file
}

// A target is what a task measures. Everything that differs between measures and comparisons is in it and in its accumulators.
type target interface {
	name() string                              // tells the task from others of its cell
	depth() int                                // by which tasks are sorted; scores.NoDepth for what is no layer
	readings() []reading                       // the tensors that its accumulator is fed with, in order
	open(s measure.Store) (accumulator, error) // an empty accumulator, with a store or without (nil)
	layers() int                               // how many layers, or pairs of layers, get scores
	depends() []string                         // what the scores depend on besides what the cell says: layers and their axes
	where(err error) string                    // what of which model an error of the accumulator concerns
}

// An accumulator gathers what a task needs.
type accumulator interface {
	update(at places, z []tensor.Tensor) error // z: b x ... for each of the target's readings
	merge(other accumulator) error
	finish() (*finished, error)
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// places identify the samples of a batch.
type places struct {
	place []int // in the order of the layout
	index []int // in the source
	label []int
}

// A reading is a tensor that a pass reads: a layer of a model, or the log-probabilities that it predicts, on x or on T(x).
type reading struct {
	model *openModel
	layer onnx.Layer // the zero Layer: log-probabilities
	moved bool
}

// prediction reports whether the reading is of log-probabilities.
func (r reading) prediction() bool { return r.layer.Name == "" }

// finished is a task's outcome.
type finished struct {
	Layers  []scores.Layer
	Samples []measure.SampleScore // where the study keeps them
}

// layer is where the task stands, for the record of its failure: a layer, or the first of a grid; "" for a prediction.
func (t *task) layer() string {
	if r := t.readings(); len(r) > 0 && t.layers() == 1 {
		return r[0].layer.Name
	}
	return ""
}

// explain says where in the study an accumulator's error arose.
func (t *task) explain(err error) error {
	where := fmt.Sprintf("%s on %s", t.where(err), t.cell.Data.spec.Name)
	var bad *measure.NonFinite
	var badIn *measure.NonFiniteIn
	if (errors.As(err, &bad) || errors.As(err, &badIn)) && t.cell.View.Transform != "" {
		where += " under " + t.cell.View.Transform
	}
	return fmt.Errorf("%s: %w", where, err)
}

// compute computes a task's scores.
func (t *task) compute(acc accumulator) (*finished, error) {
	out, err := acc.finish()
	if err != nil {
		return nil, t.explain(err)
	}
	return out, nil
}

// A siteTarget is a measure at a layer, or of the prediction.
type siteTarget struct {
	measure measure.Measure
	model   *openModel
	site    measure.Site
	moved   bool // the cell's view moves something
}

func (s *siteTarget) name() string { return s.site.Layer.Name }
func (s *siteTarget) depth() int   { return s.site.Layer.Depth }
func (s *siteTarget) layers() int  { return 1 }

func (s *siteTarget) depends() []string {
	return []string{s.site.Layer.Name + " " + string(s.site.Layer.Axes)}
}

func (s *siteTarget) readings() []reading {
	clean := reading{model: s.model}
	if !s.measure.Needs().Prediction {
		clean.layer = s.site.Layer
	}
	if !s.moved {
		return []reading{clean}
	}
	moved := clean
	moved.moved = true
	return []reading{clean, moved}
}

func (s *siteTarget) open(store measure.Store) (accumulator, error) {
	site := s.site
	site.Store = store
	acc, err := s.measure.New(site)
	return &siteAccumulator{acc, s}, err
}

func (s *siteTarget) where(error) string {
	if s.site.Layer.Name == "" {
		return fmt.Sprintf("%s of model %s", s.measure.Name(), s.model.spec.Name)
	}
	return fmt.Sprintf("layer %s of model %s", s.site.Layer.Name, s.model.spec.Name)
}

type siteAccumulator struct {
	measure.Accumulator
	target *siteTarget
}

func (a *siteAccumulator) update(at places, z []tensor.Tensor) error {
	b := measure.Batch{Place: at.place, Index: at.index, Label: at.label, Clean: z[0]}
	if len(z) > 1 {
		b.Moved = z[1]
	}
	return a.Update(&b)
}

func (a *siteAccumulator) merge(other accumulator) error {
	return a.Merge(other.(*siteAccumulator).Accumulator)
}

func (a *siteAccumulator) finish() (*finished, error) {
	s, err := a.Scores()
	if err != nil {
		return nil, err
	}
	site := &a.target.site
	out := &finished{Layers: []scores.Layer{{Name: site.Layer.Name, Depth: site.Layer.Depth, Scores: s}}}
	if sampler, ok := a.Accumulator.(measure.Sampler); ok && site.KeepSamples {
		out.Samples = sampler.Samples()
	}
	return out, nil
}
