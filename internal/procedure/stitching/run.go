package stitching

import (
	"context"
	"errors"
	"fmt"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

type run struct {
	*stitching
	job         *procedure.Job
	x           tensor.Tensor   // all images: n x c x h x w, in the frame (input size and format) of the first model
	labels      []int           // of each image: index into the outputs of the second model that are used (Subject.Outputs)
	indices     []int           // indices of the images in the data set
	trainImages int             // number of training images, which come first; the others are test images
	imagesB     []tensor.Tensor // the training images in the frame of the second model
	correctB    []float64       // 1 for each test image that the unchanged second model classifies correctly, else 0
	work        int64           // finished work, in forward passes of one sample, as Work estimates it
	front       *front          // of the layer that is stitched; nil: the network takes images
}

// newRun reads labelled samples in both frames, and tests the second model. Unreadable samples are
// missing in what j.Read returns.
func (m *stitching) newRun(ctx context.Context, j *procedure.Job) (*run, error) {
	first := dataset.Indices(min(j.Data.Len(), m.settings.Images))
	samples, err := j.Read(ctx, first, j.A.Model.Frame())
	if err != nil {
		return nil, err
	}
	second, err := j.Read(ctx, first, j.B.Model.Frame())
	if err != nil {
		return nil, err
	}
	framed := map[int]dataset.Sample{}
	for _, s := range second {
		framed[s.Index] = s
	}
	var used, ofB []dataset.Sample
	for _, s := range samples {
		if b, ok := framed[s.Index]; ok && s.Label != dataset.NoLabel {
			used, ofB = append(used, s), append(ofB, b)
		}
	}
	n := len(used)
	r := &run{stitching: m, job: j, trainImages: m.trainCount(n), x: tensor.New(append([]int{n}, j.A.Model.ImageShape()...)...)}
	if r.trainImages < 2 || n-r.trainImages < 2 {
		return nil, fmt.Errorf("%w: %d have a label; two train the stitch, and two others test it", measure.ErrTooFew, n)
	}
	for i, s := range used {
		copy(r.x.At(i).Data, s.Input.Data)
		r.labels, r.indices = append(r.labels, s.Label), append(r.indices, s.Index)
	}
	correct, err := procedure.CorrectPredictions(ctx, j.B, ofB[r.trainImages:])
	if err != nil {
		return nil, err
	}
	for _, s := range ofB[:r.trainImages] {
		r.imagesB = append(r.imagesB, s.Input)
	}
	for _, yes := range correct {
		r.correctB = append(r.correctB, indicator(yes))
	}
	r.progress(int64(len(correct)), "")
	return r, nil
}

func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// progress counts forward passes of one sample.
func (r *run) progress(work int64, note string) {
	r.work += work
	r.job.Progress(r.work, note)
}

// stitch: from is of the first model, to of the second. Scores are undefined, with the reason, if
// they cannot be stitched.
func (r *run) stitch(ctx context.Context, from, to tensor.Layer) ([]measure.Score, error) {
	// The work that is finished after this pair, as estimated.
	afterwards := r.work + r.workOf(len(r.labels))
	k := r.job.Key // names the seed, the data and the trial, on which random draws depend
	generator := seed.Rand(k.Seed, "stitching", k.Data, k.Trial, from.Name, to.Name)
	net, err := r.settings.network(r.job.A, r.job.B, from, to, generator)
	var bypassed *model.Bypassed
	var other incompatible
	// bypassed: a path goes around the layer; other: the layers do not fit.
	if errors.As(err, &bypassed) || errors.As(err, &other) {
		r.progress(afterwards-r.work, "")
		return undefined(err.Error()), nil
	}
	if err != nil {
		return nil, err
	}
	if err := r.openFront(from); err != nil {
		return nil, err
	}
	defer r.closeFront()
	if r.settings.Start == leastSquares {
		if err := r.fit(ctx, net, to); err != nil {
			return nil, err
		}
	}
	whole, err := rewrite.WithOutputs(net.Model, []string{scoresName})
	if err != nil {
		return nil, err
	}
	// Before gradient descent, with the weights that start sets.
	untrained, err := r.test(ctx, whole)
	if err != nil {
		return nil, err
	}
	trained := untrained
	if r.settings.Epochs > 0 {
		if whole, err = r.train(ctx, whole, from, to, generator.Uint64()); err != nil {
			return nil, err
		}
		if trained, err = r.test(ctx, whole); err != nil {
			return nil, err
		}
	}
	r.progress(afterwards-r.work, "")
	return r.scores(untrained, trained), nil
}

// test returns for each test image whether the network classifies it correctly: 1 or 0.
func (r *run) test(ctx context.Context, net *onnx.Model) ([]float64, error) {
	var out []float64
	err := r.outputs(ctx, net, r.trainImages, len(r.labels), func(at int, scores tensor.Tensor) error {
		for i := range scores.Shape[0] {
			row := scores.At(i)
			if row.FirstNonFinite() >= 0 {
				return fmt.Errorf("the class scores of sample %d contain NaN or infinity", r.indices[at+i])
			}
			out = append(out, indicator(procedure.IsLargest(row.Data, r.labels[at+i])))
		}
		return nil
	})
	return out, err
}

const batch = 32 // images in one run of a network, except in training

// outputs runs a network on the images low to high - 1, in batches, and calls each with the index
// of the first image of a batch and the output for the batch.
func (r *run) outputs(ctx context.Context, net *onnx.Model, low, high int, each func(at int, output tensor.Tensor) error) error {
	session, err := r.job.Graphs.Compile(net, 0, false)
	if err != nil {
		return err
	}
	defer session.Close()
	for at := low; at < high; at += batch {
		input, err := r.front.input(ctx, r.x.Slice(at, min(at+batch, high)))
		if err != nil {
			return err
		}
		output, err := engine.Compute(ctx, session, input)
		if err != nil {
			return err
		}
		if err := each(at, output); err != nil {
			return err
		}
	}
	return nil
}
