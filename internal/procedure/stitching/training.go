package stitching

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/state"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// train trains the stitch of net, or loads its weights from the job's store if they are there, and
// returns net with these weights. net is one model up to the layer from, the stitch, and another
// model after the layer to.
func (r *run) train(ctx context.Context, net *onnx.Model, from, to tensor.Layer, seed uint64) (*onnx.Model, error) {
	name := r.name(from, to)
	if r.job.Store != nil {
		weights := map[string]tensor.Tensor{}
		for _, w := range net.Weights() {
			if w.Name == weightName || w.Name == biasName {
				weights[w.Name] = tensor.New(w.Sizes()...)
			}
		}
		if procedure.LoadWeights(r.job.Store, name, weights) {
			return rewrite.WithWeights(net, weights)
		}
	}
	checkpoint := &state.Part{Store: r.job.Checkpoint, Kind: stateKind, Version: stateVersion,
		Code: func(c *state.Codec) { c.Matches(name) }}
	if err := checkpoint.Restore(); err != nil {
		return nil, err
	}
	const warmup = 0 // steps
	t, err := train.On(r.job.Graphs, 0, train.Spec{Model: net, Parameters: []string{weightName, biasName}, Loss: train.CrossEntropy,
		Optimiser: train.Adam{Rate: r.settings.Rate}, Schedule: train.Cosine(warmup)})
	if err != nil {
		return nil, err
	}
	defer t.Close()
	before := r.work   // done by the job so far
	const perImage = 3 // work of training on an image: a step costs about three forward passes
	// nil: there are no validation samples.
	images := &train.Arrays{Inputs: []tensor.Tensor{r.x.Slice(0, r.trainImages)}, Targets: train.Targets{Classes: r.labels[:r.trainImages]}}
	_, err = t.Fit(ctx, frontSource{images, r.front}, nil, train.FitOptions{
		Epochs: r.settings.Epochs, Batch: r.settings.Batch, Seed: seed, Checkpoint: checkpoint,
		AfterStep: func(p train.StepProgress) {
			r.job.Progress(before+perImage*int64((p.Epoch-1)*p.Total+p.Samples), fmt.Sprintf("layer %s to %s, epoch %d, loss %.3g", from.Name, to.Name, p.Epoch, p.Loss))
		}})
	if err != nil {
		return nil, err
	}
	weights := t.Weights()
	if r.job.Store != nil {
		if err := procedure.SaveWeights(r.job.Store, name, weights); err != nil {
			return nil, err
		}
	}
	return rewrite.WithWeights(net, weights)
}

func (r *run) name(from, to tensor.Layer) string {
	j := r.job
	model := func(s procedure.Subject) string { return s.Identity + " " + s.Model.SHA256() }
	all := []any{"stitching", r.Version(), model(j.A), from.Name, model(j.B), to.Name, j.B.Outputs, j.Data.Fingerprint(), r.indices[:r.trainImages], r.labels[:r.trainImages],
		fmt.Sprintf("%+v", r.settings), j.Key.Seed, j.Key.Data, j.Key.Trial, j.Engine}
	return fmt.Sprintf("stitch %x", sha256.Sum256([]byte(strings.Trim(fmt.Sprintf("%q", all), "[]"))))
}

const (
	stateKind    = "stitching"
	stateVersion = 1
)
