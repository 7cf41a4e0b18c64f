package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Behind is a network that takes what comes before a preprocessing's mean and deviation, and before its spectrogram: samples of a
// shape, images with values in [0, 1] or waveforms. Then whoever runs it need not know these. A network over a spectrogram takes it
// as b x bands x frames, or as b x 1 x bands x frames. The input is "input", the output "logits"; weights keep their names.
func Behind(p model.Preprocess, shape []int, m *onnx.Model) (*onnx.Model, error) {
	if len(m.Outputs()) != 1 {
		return nil, fmt.Errorf("putting a preprocessing before a network: it has %d outputs, and wants one", len(m.Outputs()))
	}
	return behind(p, shape, m, "logits")
}

// BehindLayers is Behind for a network whose outputs are its layers: they keep their names.
func BehindLayers(p model.Preprocess, shape []int, m *onnx.Model) (*onnx.Model, error) {
	var names []string
	for _, o := range m.Outputs() {
		names = append(names, o.Name)
	}
	return behind(p, shape, m, names...)
}

func behind(p model.Preprocess, shape []int, m *onnx.Model, names ...string) (*onnx.Model, error) {
	out, err := included(p, shape, m, names)
	if err != nil {
		return nil, fmt.Errorf("putting a preprocessing before a network: %w", err)
	}
	return out, nil
}

// included is the network behind the preprocessing, its outputs under the given names.
func included(p model.Preprocess, shape []int, m *onnx.Model, names []string) (*onnx.Model, error) {
	inputs := m.Inputs()
	switch {
	case len(inputs) != 1 || len(shape) < 2:
		return nil, fmt.Errorf("it has %d inputs, and samples have the shape %v: it wants one, and channels and space", len(inputs), shape)
	case p.Order == "bgr":
		return nil, errors.New("the order bgr is for networks that were trained so: leave it out")
	case p.Standardise:
		return nil, errors.New("standardise is for networks that were trained so: leave it out")
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
		b.Output(names[i], v)
	}
	return b.Model()
}

// normalised is (low + x (high - low) - mean) / std of images, and what stands for it of sounds: x scale + shift, by channel.
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
			std := of(p.Std, c, 1)
			scale.Data[c], shift.Data[c] = (high-low)/std, (low-of(p.Mean, c, 0))/std
		}
	}
	if !slices.ContainsFunc(scale.Data, func(v float32) bool { return v != 1 }) && !slices.ContainsFunc(shift.Data, func(v float32) bool { return v != 0 }) {
		return x, nil
	}
	return b.Add(b.Mul(x, b.Const("input.scale", scale)), b.Const("input.shift", shift)), nil
}

// of is the value for channel c of a list with one value for each, one for all, or none.
func of(v []float32, c int, none float32) float32 {
	switch len(v) {
	case 0:
		return none
	case 1:
		return v[0]
	}
	return v[c]
}
