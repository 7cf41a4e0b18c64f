package stitching

import (
	"context"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/tensor"
)

// A front is a model up to a layer: the first model, if it is no graph that the stitched network
// could contain. A nil front leaves images as they are.
type front struct {
	session *model.Session
	buffers *model.Buffers
}

// openFront opens the front that ends at a layer, if the first model is no graph.
func (r *run) openFront(from tensor.Layer) error {
	if r.job.A.Model.Graph() != nil {
		return nil
	}
	const withScores = false // the classes of the first model are not needed
	session, err := r.job.A.Model.NewSession([]tensor.Layer{from}, withScores)
	if err != nil {
		return err
	}
	r.front = &front{session: session}
	r.front.buffers, err = session.NewBuffers(max(batch, r.settings.Batch))
	return err
}

func (r *run) closeFront() {
	if r.front != nil {
		r.front.session.Close()
		r.front = nil
	}
}

// input returns the input of a stitched network for images, n x c x h x w: the images, or the
// activations of the layer for them, which the next call overwrites.
func (f *front) input(ctx context.Context, images tensor.Tensor) (tensor.Tensor, error) {
	if f == nil {
		return images, nil
	}
	one := make([]tensor.Tensor, images.Shape[0])
	for i := range one {
		one[i] = images.At(i)
	}
	if err := f.session.Run(ctx, one, f.buffers); err != nil {
		return tensor.Tensor{}, err
	}
	return f.buffers.Layer(0), nil
}

// A frontSource holds samples to train on, of which it runs the front.
type frontSource struct {
	*train.Arrays
	front *front
}

// Batch implements train.Source.
func (s frontSource) Batch(ctx context.Context, indices []int) (train.Batch, error) {
	b, err := s.Arrays.Batch(ctx, indices)
	if err != nil {
		return b, err
	}
	x, err := s.front.input(ctx, b.Inputs[0])
	b.Inputs = []tensor.Tensor{x}
	return b, err
}
