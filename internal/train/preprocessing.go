package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/model/preprocessing"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// WithPreprocessing returns a network that includes its preprocessing p. Its input, named "input",
// is a batch of images with values in [0, 1] or of waveforms; shape is that of one sample, with the
// channels first. The network applies mean, standard deviation and spectrogram itself. If p has
// Features, m must take batches of b spectrograms: b x bands x frames or b x 1 x bands x frames.
// outputs are new names for the outputs; without them the outputs keep their names. Weights keep
// their names.
//
// A network with several inputs is an error, and so are the order bgr and Standardise in p.
func WithPreprocessing(p model.Preprocess, shape []int, m *onnx.Model, outputs ...string) (*onnx.Model, error) {
	out, err := prepended(p, shape, m, outputs)
	if err != nil {
		return nil, fmt.Errorf("adding the preprocessing to a network: %w", err)
	}
	return out, nil
}

func prepended(p model.Preprocess, shape []int, m *onnx.Model, names []string) (*onnx.Model, error) {
	inputs := m.Inputs()
	switch {
	case len(inputs) != 1 || len(shape) < 2:
		return nil, fmt.Errorf("the network has %d inputs and samples have shape %v: want one input, and samples of channels and at least one spatial axis", len(inputs), shape)
	case len(names) > 0 && len(names) != len(m.Outputs()):
		return nil, fmt.Errorf("the network has %d outputs, and %d names are given", len(m.Outputs()), len(names))
	case p.Order == "bgr":
		return nil, errors.New("the order bgr is not supported in a trained network: leave it out")
	case p.Standardise:
		return nil, errors.New("standardise is not supported in a trained network: leave it out")
	}
	b := onnx.NewBuilder(m.Opset())
	y, err := normalised(b, p, shape, b.Input("input", onnx.Float, append([]int{-1}, shape...)...))
	if err != nil {
		return nil, err
	}
	if p.Features != nil {
		if y, err = p.Features.Graph(b, y); err != nil {
			return nil, err
		}
		if len(inputs[0].Shape) == 4 {
			y = b.Unsqueeze(y, 1) // b x 1 x bands x frames
		}
	}
	for i, v := range b.Include(m, map[string]onnx.Value{inputs[0].Name: y}) {
		name := m.Outputs()[i].Name
		if len(names) > 0 {
			name = names[i]
		}
		b.Output(name, v)
	}
	return b.Model()
}

// normalised returns scale * x + shift by channel. That is (low + x (high - low) - mean) / std for
// images, with low and high from p.Bounds; for audio scale and shift are those of p.AudioScale.
func normalised(b *onnx.Builder, p model.Preprocess, shape []int, x onnx.Value) (onnx.Value, error) {
	perChannel := append([]int{shape[0]}, slices.Repeat([]int{1}, len(shape)-1)...)
	scale, shift := tensor.New(perChannel...), tensor.New(perChannel...)
	if len(shape) == 2 {
		if err := p.CheckAudio(); err != nil {
			return "", err
		}
		scale.Data[0], shift.Data[0] = p.AudioScale()
	} else {
		if err := p.Check(shape[0]); err != nil {
			return "", err
		}
		low, high := p.Bounds()
		for c := range shape[0] {
			std := preprocessing.ChannelValue(p.Std, c, 1)
			scale.Data[c], shift.Data[c] = (high-low)/std, (low-preprocessing.ChannelValue(p.Mean, c, 0))/std
		}
	}
	if !slices.ContainsFunc(scale.Data, func(v float32) bool { return v != 1 }) && !slices.ContainsFunc(shift.Data, func(v float32) bool { return v != 0 }) {
		return x, nil
	}
	return b.Add(b.Mul(x, b.Const("input.scale", scale)), b.Const("input.shift", shift)), nil
}
