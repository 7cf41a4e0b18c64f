// Package stitching measures whether one model can continue from a layer of another one: model
// stitching (Lenc and Vedaldi 2015; Bansal, Nakkiran and Barak 2021; Csiszárik et al. 2021).
//
// The front of the first model, a, ends at a layer. A linear map, the stitch, turns the activations
// of that layer into activations of a layer of the second model, b, from which the rest of b
// computes the class. The stitch is trained to classify, with all weights of both models fixed:
//
//	x -> front of a -> stitch -> back of b -> class
//
// If both layers are feature maps, the stitch is a 1 x 1 convolution, that is, one linear map of
// the channels at each position; maps of different sizes are resized first. Otherwise it is a
// linear map of all values. The stitch is trained by Adam on some of the samples and tested on the
// others.
//
// The second model is an ONNX graph, into which the stitch is put. The first one may be any model that
// computes its layers: the stitched network then begins with the activations of its layer.
//
// A job is one run of the measure on two models, A and B (procedure.Job). A model that is stitched
// to itself by the identity, without training (Start identity, Epochs 0), has exactly its own
// accuracy.
package stitching

import (
	"context"
	"fmt"
	"math"

	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
)

// New returns the measure stitching, with accuracy, gain (over the untrained stitch) and penalty
// (the accuracy of b minus that of the stitched network).
func New(s Settings) (procedure.Procedure, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	return &stitching{s}, nil
}

type stitching struct{ settings Settings }

func (*stitching) Name() string { return "stitching" }

func (*stitching) Descriptor() measure.Descriptor { return Descriptor() }

func (*stitching) Version() int { return 1 }

func (m *stitching) Settings() any { return m.settings }

// Needs asks for labels and pairs of layers (measure.PairSame: by name, else by order).
func (m *stitching) Needs() procedure.Needs {
	return procedure.Needs{Pair: true, Directional: true, Labels: true, Layers: measure.PairSame, Samples: m.settings.Images}
}

// Skip returns why a job cannot be run, or "". A nil Subject.Outputs stands for all.
func (m *stitching) Skip(j *procedure.Job) string {
	for _, s := range []procedure.Subject{j.A, j.B} {
		if s.Model.Batch() > 0 {
			return fmt.Sprintf("%s takes %d images at a time: export it with a free batch size", s.Name, s.Model.Batch())
		}
	}
	switch {
	case j.B.Model.Classes() == 0:
		return fmt.Sprintf("the model %s has no class scores", j.B.Name)
	case j.B.Model.Classes() < 2 || j.B.Outputs != nil && len(j.B.Outputs) < 2:
		return "a classifier needs at least two classes"
	case j.B.Model.Graph() == nil:
		return j.B.Name + " is no ONNX graph, into which a stitch could be put"
	case !j.A.Model.TakesInput(), j.A.Model.Graph() != nil && j.A.Model.NoGradient() != "":
		return j.A.Name + " " + j.A.Model.NoGradient()
	case m.trainCount(j.Data.Len()) < 2 || j.Data.Len()-m.trainCount(j.Data.Len()) < 2:
		return fmt.Sprintf("%d samples are too few: two train the stitch, and two others test it", j.Data.Len())
	}
	return ""
}

func (m *stitching) trainCount(n int) int { return int(math.Round(m.settings.Train * float64(n))) }

// Work counts forward passes of one sample: three for a training step, two for least squares, one
// for each test of the second model, an untrained or a trained stitch.
func (m *stitching) Work(j *procedure.Job) int64 {
	n := j.Data.Len()
	tests := int64(n - m.trainCount(n))
	return tests + int64(len(j.Pairs))*m.workOf(n)
}

func (m *stitching) workOf(n int) int64 {
	passes := 3 * m.settings.Epochs
	if m.settings.Start == leastSquares {
		passes += 2
	}
	return int64(passes)*int64(m.trainCount(n)) + 2*int64(n-m.trainCount(n))
}

func (m *stitching) Run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	scores, err := m.run(ctx, j)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return scores, err
}

func (m *stitching) run(ctx context.Context, j *procedure.Job) ([]measure.PairScore, error) {
	r, err := m.newRun(ctx, j)
	if err != nil {
		return nil, err
	}
	var out []measure.PairScore
	for _, p := range j.Pairs {
		scores, err := r.stitch(ctx, j.A.Layers[p[0]], j.B.Layers[p[1]])
		if err != nil {
			return nil, fmt.Errorf("stitching layer %q of %s to layer %q of %s: %w", j.A.Layers[p[0]].Name, j.A.Name, j.B.Layers[p[1]].Name, j.B.Name, err)
		}
		for _, s := range scores {
			out = append(out, measure.PairScore{A: p[0], B: p[1], Score: s})
		}
	}
	return out, nil
}
