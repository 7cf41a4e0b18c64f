package train

import (
	"fmt"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Behind is a network that takes what comes before the preprocessing's mean and deviation: pictures with values in [0, 1]. Then
// whoever runs it need not know them. The input is "input", the output "logits"; weights keep their names.
func Behind(p dataset.Preprocess, m *onnx.Model) (*onnx.Model, error) {
	inputs, outputs := m.Inputs(), m.Outputs()
	if len(inputs) != 1 || len(outputs) != 1 || len(inputs[0].Shape) < 2 {
		return nil, fmt.Errorf("putting a preprocessing before a network: it has %d inputs and %d outputs; it wants one each", len(inputs), len(outputs))
	}
	shape := inputs[0].Sizes()
	channels := shape[1]
	if err := p.Check(channels); err != nil {
		return nil, err
	}
	if p.Order == "bgr" {
		return nil, fmt.Errorf("the order bgr is for networks that were trained so: leave it out")
	}
	b := onnx.NewBuilder(m.Opset())
	x := b.Input("input", onnx.Float, shape...)
	// out = (low + in (high - low) - mean) / std = in scale + shift
	low, high := p.Bounds()
	scale, shift := tensor.New(append([]int{channels}, ones(len(shape)-2)...)...), tensor.New(append([]int{channels}, ones(len(shape)-2)...)...)
	of := func(v []float32, c int, none float32) float32 {
		switch len(v) {
		case 0:
			return none
		case 1:
			return v[0]
		}
		return v[c]
	}
	plain := true
	for c := range channels {
		std := of(p.Std, c, 1)
		scale.Data[c], shift.Data[c] = (high-low)/std, (low-of(p.Mean, c, 0))/std
		plain = plain && scale.Data[c] == 1 && shift.Data[c] == 0
	}
	y := x
	if !plain {
		y = b.Add(b.Mul(x, b.Const("input.scale", scale)), b.Const("input.shift", shift))
	}
	b.Output("logits", b.Include(m, map[string]onnx.Value{inputs[0].Name: y})[0])
	return b.Model()
}

func ones(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = 1
	}
	return list
}
