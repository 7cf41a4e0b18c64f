package invert

import (
	"context"
	"fmt"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/tensor"
)

const forwardBatch = 32

// Represent returns the activations of a layer, n x d, for images, n x c x h x w with values in
// [0, 1]. It resizes the images to the model's size.
func Represent(ctx context.Context, m *model.Model, layer tensor.Layer, images tensor.Tensor) (tensor.Tensor, error) {
	n := images.Shape[0]
	z := tensor.New(n, tensor.Size(layer.Shape))
	const withScores = false // of the classes: not needed
	s, err := m.NewSession([]tensor.Layer{layer}, withScores)
	if err != nil {
		return z, err
	}
	defer s.Close()
	buf, err := s.NewBuffers(max(1, min(n, forwardBatch)))
	if err != nil {
		return z, err
	}
	for at := 0; at < n; at += buf.Cap() {
		end := min(at+buf.Cap(), n)
		part, err := FrameImages(m, images, at, end)
		if err != nil {
			return z, err
		}
		if err := s.Run(ctx, part, buf); err != nil {
			return z, fmt.Errorf("reading layer %q: %w", layer.Name, err)
		}
		copy(z.Slice(at, end).Data, buf.Layer(0).Data)
	}
	return z, nil
}
