// Package procedure defines measures that do not accumulate statistics in one reading of the
// samples: they work in steps on samples in memory. Examples are the inversion of a representation
// (gradient descent on an input until its representation is close to a given one) and the training
// of a probe.
//
// A Procedure runs a Job: one or two models with their layers, a source of samples, and a
// checkpoint, in one trial. If it needs a transformation, the job has all its values or its range,
// so that the procedure can follow a sample along a trajectory (its transformed versions, or the
// frames before and after it, in order) or draw a value for each sample. A procedure runs until its
// scores are computed or its context ends. A later run restores the checkpoint and continues.
// Procedures are seeded and reproducible on one machine: a resumed run gives exactly the scores of
// an uninterrupted one.
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
	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/features"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Procedure is a measure that works in steps on samples in memory.
type Procedure interface {
	measure.Method
	// Needs returns the requirements on jobs.
	Needs() Needs
	// Skip returns why a job cannot be run, or "". It depends on models, layers and Source.Len
	// only.
	Skip(j *Job) string
	// Work estimates forward passes of one sample, without reading any; a step with a gradient
	// counts as three.
	Work(j *Job) int64
	// Run runs the job. If the context ends, it saves a checkpoint and returns the context's error
	// within about a second.
	Run(ctx context.Context, j *Job) ([]measure.PairScore, error)
}

// Needs describes the requirements of a procedure on its jobs.
type Needs struct {
	Pair        bool // two models, a reference A and another one B; else one
	Directional bool // the scores of (a, b) differ from those of (b, a)
	Labels      bool // samples must have labels
	Prediction  bool // models must have class scores
	Transform   bool // a transformation: one job for each of the study, with all its values
	// ReadyPairs, with Transform: the procedure also accepts ready-made pairs. It then gets one
	// job, whose Transform is the variable ReadyPairs.
	ReadyPairs bool
	// OwnTrajectories, with Transform: the procedure also accepts data whose samples form
	// trajectories. It then gets one job without Job.Transform.
	OwnTrajectories bool
	Sequences       bool // samples must be sequences of frames; see dataset.AreSequences
	// Layers is the default pairing, such as measure.PairSame; "" reads no layers.
	Layers string
	// Samples is the largest number of samples, the first of the random order; 0 is all.
	Samples int
	// NewSamples, with Samples: each trial uses the next samples of the order, which is cyclic.
	NewSamples bool
}

// A Job is one run of a procedure.
type Job struct {
	A, B Subject // B is the zero Subject unless Needs.Pair
	// Pairs are indices into A.Layers and B.Layers; without B, {i, i} for each layer.
	Pairs [][2]int
	Key   measure.Key // seeds all random draws; Trial distinguishes repetitions
	// Transform is the transformation of the job; nil unless Needs.Transform. The samples of Data
	// are not transformed: the procedure must apply the Op that Draw returns.
	Transform *Transform
	// Data holds at most Needs.Samples samples in random order. Labels are indices of outputs of
	// model A, or of B with Needs.Pair and Needs.Labels; without Needs.Labels, those of the data if
	// its classes do not match.
	Data dataset.Source
	// Repeated: despite Needs.NewSamples, an earlier trial uses some of the samples too.
	Repeated bool
	// Read reads samples by their positions, in order, in the frame f. Unreadable ones are left out
	// and recorded; too many of them are an error.
	Read func(ctx context.Context, positions []int, f dataset.Frame) ([]dataset.Sample, error)

	Checkpoint state.Checkpoint // of this job; may be nil
	// Shared returns a checkpoint for a result that jobs with different B have in common, such as
	// the inversion of a layer of A: the first job saves it and the others load it. Checkpoints are
	// separate for each model A, data and trial; key must describe all else that the result depends
	// on. Shared may be nil.
	Shared func(key string) state.Checkpoint
	// Units and Curves store results of single units. Each may be called several times, and may be
	// nil.
	Units  func([]measure.UnitScore) error
	Curves func([]measure.UnitResponse) error

	// Store stores representations that jobs, measures and runs share; it may be nil.
	Store *features.Store
	// Progress is called with the work done, in the units of Work, and a note for display. It is
	// not nil.
	Progress func(done int64, note string)
	// Graphs runs and, in package train, trains graphs that the procedure builds.
	Graphs  Compiler
	Threads int    // of Graphs; 0: all cores
	Engine  string // version and device of the engine, on which results depend by rounding
	Memory  int64  // memory that may be used, in bytes; results do not depend on it
}

// A Compiler opens sessions for ONNX graphs. threads is the number of threads of a run; 0: as the
// compiler was set up. With spin, threads wait for the next run in a busy loop.
type Compiler interface {
	Compile(graph *onnx.Model, threads int, spin bool) (engine.Session, error)
}

// A Subject is a model with the layers to measure.
type Subject struct {
	Name     string
	Identity string // identifies the model with its settings; "": the model's SHA-256
	Model    *model.Model
	Layers   []tensor.Layer
	Outputs  []int // class outputs that are used for predictions; nil: all
}
