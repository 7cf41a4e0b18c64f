package invert

import (
	"fmt"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// FrameImages returns images[from:to], each c x h x w with the size and channels that the model
// takes. images is n x c x h x w. FrameImages resizes without cropping, with the interpolation of
// the model's preprocessing.
func FrameImages(m *model.Model, images tensor.Tensor, from, to int) ([]tensor.Tensor, error) {
	list := make([]tensor.Tensor, to-from)
	for i := range list {
		var err error
		if list[i], err = modelFrame(m).Tensor(images.At(from + i)); err != nil {
			return nil, fmt.Errorf("images for model %s: %w", m.Path(), err)
		}
	}
	return list, nil
}

func modelFrame(m *model.Model) dataset.Frame {
	shape := m.ImageShape()
	return dataset.Frame{Channels: shape[0], Height: shape[1], Width: shape[2], Interpolation: m.Frame().Interpolation}
}

// modelInput converts the current images, s.x, to the size and channels that a model takes. Both
// are linear maps, so each is a product with a matrix, found by applying the map to the identity.
func (s *stepBuilder) modelInput(m *model.Model) (onnx.Value, error) {
	to := m.ImageShape()
	if slices.Equal(to, s.image) {
		return s.x, nil
	}
	rows, err := resizeMatrix(m, s.image[1], to[1])
	if err != nil {
		return "", err
	}
	columns, err := resizeMatrix(m, s.image[2], to[2])
	if err != nil {
		return "", err
	}
	channels, err := channelMatrix(m, s.image[0])
	if err != nil {
		return "", err
	}
	b := s.b
	// MatMul multiplies the last two axes of s.x.
	x := b.MatMul(b.MatMul(b.Const("", rows), s.x), b.Transpose(b.Const("", columns), 1, 0))
	if s.image[0] == to[0] {
		return x, nil
	}
	return b.Conv(x, b.Const("", channels), "", nil), nil
}

func resizeMatrix(m *model.Model, from, to int) (tensor.Tensor, error) {
	identity := tensor.New(1, from, from)
	for i := range from {
		identity.Data[i*from+i] = 1
	}
	f := modelFrame(m)
	f.Channels, f.Height, f.Width = 1, to, from
	t, err := f.Tensor(identity)
	return tensor.Tensor{Shape: []int{to, from}, Data: t.Data}, err
}

// as the kernel of a 1 x 1 convolution
func channelMatrix(m *model.Model, from int) (tensor.Tensor, error) {
	to := m.ImageShape()[0]
	kernel := tensor.New(to, from, 1, 1)
	f := dataset.Frame{Channels: to} // without a size: it stays
	for i := range from {
		unit := tensor.New(from, 1, 1)
		unit.Data[i] = 1
		t, err := f.Tensor(unit)
		if err != nil {
			return kernel, err
		}
		for o := range to {
			kernel.Data[o*from+i] = t.Data[o]
		}
	}
	return kernel, nil
}
