package cdbn

import (
	"context"
	"errors"
	"fmt"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// Model returns an ONNX model of a network. The model's input "x" is b x channels x height x width,
// of any size that the filters fit into. Its outputs "layer1", "layer2", ... are the probabilities
// of the pooling units, b x K x h x w. Nothing is sampled: each layer takes the probabilities of
// the layer below. Rows and columns that fill no block are left out.
func Model(layers ...*Layer) (*onnx.Model, error) {
	if len(layers) == 0 {
		return nil, errors.New("stacking: at least one layer is needed")
	}
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, layers[0].W.Shape[1], -1, -1)
	channels := layers[0].W.Shape[1]
	for i, l := range layers {
		if l.W.Shape[1] != channels {
			return nil, fmt.Errorf("stacking: layer %d takes %d channels, but the layer below has %d", i+1, l.W.Shape[1], channels)
		}
		name := fmt.Sprintf("layer%d", i+1)
		b.Output(name, l.pooled(b, x, name))
		x, channels = onnx.Value(name), l.W.Shape[0]
	}
	return b.Model()
}

// pooled returns the probabilities of pooling units, S / (1 + S), with S the sum of exp I over a
// block and I the inputs of its hidden units.
func (l *Layer) pooled(b *onnx.Builder, x onnx.Value, name string) onnx.Value {
	w := l.W.Clone() // Scale, by which training images were multiplied, becomes part of the filters
	for i := range w.Data {
		w.Data[i] *= float32(l.Scale)
	}
	input := b.Conv(x, b.Const(name+".weight", w), b.Const(name+".bias", l.B), nil)
	// exp overflows float32 beyond 88; a unit with such an input is on with probability 1.
	mean := b.Op("AveragePool", onnx.Attrs{"kernel_shape": []int{l.Block, l.Block}, "strides": []int{l.Block, l.Block}},
		b.Exp(b.Op("Min", nil, input, b.Scalar(80))))
	sum := b.Mul(mean, b.Scalar(float32(l.Block*l.Block)))
	return b.Div(sum, b.Add(sum, b.Scalar(1)))
}

// Encode returns the probabilities of the pooling units of a layer, n x K x h x w, for images,
// n x channels x height x width. The next layer is trained on them.
func Encode(ctx context.Context, rt *ort.Runtime, l *Layer, images tensor.Tensor) (tensor.Tensor, error) {
	m, err := Model(l)
	if err != nil {
		return tensor.Tensor{}, err
	}
	s, err := rt.NewSession(m, ort.Options{})
	if err != nil {
		return tensor.Tensor{}, err
	}
	defer s.Close()
	var out tensor.Tensor
	for i := range images.Shape[0] {
		in, err := rt.NewValue(onnx.Float, append([]int{1}, images.Shape[1:]...)...)
		if err != nil {
			return out, err
		}
		copy(ort.Data[float32](in), images.At(i).Data)
		outputs := []*ort.Value{nil}
		err = s.Run(ctx, []*ort.Value{in}, outputs)
		in.Close()
		if err != nil {
			return out, err
		}
		t := outputs[0].Tensor()
		if i == 0 {
			out = tensor.New(append([]int{images.Shape[0]}, t.Shape[1:]...)...)
		}
		copy(out.At(i).Data, t.Data)
		outputs[0].Close()
	}
	return out, nil
}

// Images returns the filters of the groups of the top layer, in pixels of the network's input: each
// channels x side x side. For deeper layers it sums the filters of the layer below, weighted by the
// filters of the layer and shifted by one block per position. This treats units as linear
// (Goodfellow et al. 2009, figure 4).
func Images(layers ...*Layer) []tensor.Tensor {
	var below []tensor.Tensor
	for k := range layers[0].W.Shape[0] {
		below = append(below, layers[0].W.At(k).Clone())
	}
	step := 1
	for i, l := range layers[1:] {
		step *= layers[i].Block
		images := make([]tensor.Tensor, l.W.Shape[0])
		for k := range images {
			images[k] = spread(l.W.At(k), below, step)
		}
		below = images
	}
	return below
}

// spread returns the filter of a unit in the pixels of the input: the sum of images, one for each
// channel of the unit's own filter (channels x f x f), weighted by its values and shifted by step
// pixels per position.
func spread(filter tensor.Tensor, images []tensor.Tensor, step int) tensor.Tensor {
	c, side, f := images[0].Shape[0], images[0].Shape[1], filter.Shape[1]
	out := tensor.New(c, side+(f-1)*step, side+(f-1)*step)
	outSide := out.Shape[1]
	for i, w := range filter.Data {
		image, y, x := images[i/(f*f)], i/f%f*step, i%f*step
		for k := range c {
			for r := range side {
				row := out.Data[(k*outSide+y+r)*outSide+x:][:side]
				for j, v := range image.Data[(k*side+r)*side:][:side] {
					row[j] += w * v
				}
			}
		}
	}
	return out
}
