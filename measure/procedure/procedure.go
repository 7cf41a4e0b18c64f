// Package procedure defines measures that cannot be accumulators: they work in steps on samples
// that they hold, such as the inversion of a representation or the training of a probe.
//
// A Procedure is given a Job: one or two models with their layers, a source of samples, and a
// checkpoint. A procedure that needs a transformation gets all its values or its range, so that it
// can follow a sample along a trajectory or draw a value for each sample. It runs until it has its
// scores or its context ends. A later run restores the checkpoint and continues. Procedures are
// seeded and repeatable on one machine: a resumed run gives exactly the scores of an uninterrupted
// one.
//
// For example, to run a procedure on a job:
//
//	if reason := p.Skip(job); reason != "" {
//		return errors.New(reason)
//	}
//	scores, err := p.Run(ctx, job)
package procedure

import (
	"context"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/features"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/ort"
	"github.com/noether-ml/noether/train"
)

// A Procedure is a measure that works in steps on samples that it holds.
type Procedure interface {
	measure.Method
	// Needs returns what a job must have.
	Needs() Needs
	// Skip returns why a job cannot be run (no class scores, layers that cannot be compared), or
	// "". It depends on models, layers and Source.Len only and reads no samples.
	Skip(j *Job) string
	// Work estimates the work in forward passes of one sample; a step with a gradient counts as
	// three. Like Skip it reads no samples.
	Work(j *Job) int64
	// Run runs the job. When the context ends, it saves a checkpoint and returns the context's
	// error within a second.
	Run(ctx context.Context, j *Job) ([]measure.PairScore, error)
}

// Needs is what a procedure needs of its jobs.
type Needs struct {
	Pair        bool // two models: a is the reference, b the other; else one
	Directional bool // the scores of (a, b) differ from those of (b, a)
	Labels      bool // samples must carry labels
	Prediction  bool // the models must score classes
	Transform   bool // a transformation: one job for each of the study, with all its values
	// OwnTrajectories, beside Transform: data whose samples lie on trajectories of their own, as
	// gratings and video do, serve without a transformation, in one job with no Job.Transform.
	OwnTrajectories bool
	// how layers are paired where the study does not say: see Pairings. "": the procedure reads
	// none
	Layers string
	// largest number of samples, the first of the study's keyed order; 0: all
	Samples int
	// NewSamples, beside Samples: each trial takes the next samples of the order, from its start again
	// at the end.
	NewSamples bool
}

// Values of Needs.Layers: how layers of two models are paired.
const (
	Penultimate = "penultimate" // the input of the last matrix product of each model
	Same        = "same"        // by name where both have the same names, else by position
	Grid        = "grid"        // every layer with every layer
)

// A Job is one run of a procedure.
type Job struct {
	A, B Subject // B is the zero Subject unless Needs.Pair
	// which of A.Layers with which of B.Layers; without a pair of models, {i, i} for each layer
	Pairs [][2]int
	Key   measure.Key // key of all random draws; Trial distinguishes repetitions
	// Transform is the transformation that the job concerns; nil unless Needs.Transform. The
	// samples are not transformed: a procedure applies the Op that Draw returns.
	Transform *Transform
	// the samples, in the study's keyed order, no more than Needs.Samples; labels are outputs of
	// model A
	Data dataset.Source
	// Repeated reports whether an earlier trial takes some of the samples too, though each should take
	// new ones.
	Repeated bool
	// Read reads the samples at the given places of Data, in order, framed. Those that cannot be
	// read are left out, noted in the run's record, and an error where they are more than 1 %.
	Read func(ctx context.Context, places []int, f dataset.Frame) ([]dataset.Sample, error)

	Checkpoint train.Checkpoint
	// Shared stores results that jobs of a study with different B have in common, such as the
	// inversion of a layer of A that several models are compared with: the first job saves it and
	// the others load it. It distinguishes model A, data and trial; key must distinguish the rest.
	// It may be nil.
	Shared func(key string) train.Checkpoint
	// Units and Curves store the results of single units. Each may be called several times, and may
	// be nil.
	Units  func([]measure.UnitScore) error
	Curves func([]measure.UnitResponse) error

	// Store stores representations that jobs, measures and runs have in common; may be nil.
	Store *features.Store
	// done of Work, and what else to show, such as the current distance; never nil
	Progress func(done int64, note string)
	Runtime  *ort.Runtime
	Threads  int    // of the engine; 0: all cores
	Device   string // of the engine; "": cpu
	Memory   int64  // bytes that may be held; results do not depend on it
}

// A Subject is a model with the layers to measure.
type Subject struct {
	Name     string
	Identity string // identifies the model with its settings; "": the model's SHA-256
	Model    *model.Model
	Layers   []onnx.Layer
	Outputs  []int // outputs that the softmax includes; nil: all
}
