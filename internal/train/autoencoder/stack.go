package autoencoder

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Branch is a stack of layers with a name. Each layer is the encoder of a trained autoencoder,
// tanh(W1 x + B1). The first layer takes the input, a later one the units of the layer below.
// Branches may share their lower layers.
type Branch struct {
	Name   string
	Layers []*Layer
}

// Model returns an ONNX model of branches. Its input "x" is b x channels x side x side for a batch
// of b images, with values in [-1, 1]. Layer number I of a branch NAME, counted from 1, has an
// output NAME/layerI, b x units, or layerI for a branch without a name. A shared layer is named
// after the first branch that has it. Layers that do not fit on one another are an error, and so
// is a model without layers.
func Model(side, channels int, branches ...Branch) (*onnx.Model, error) {
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Flatten(b.Input("x", onnx.Float, -1, channels, side, side), 1)
	values := map[*Layer]onnx.Value{}
	for _, branch := range branches {
		below, width := x, channels*side*side
		for i, l := range branch.Layers {
			if l.W1.Shape[1] != width {
				return nil, fmt.Errorf("stacking %s: layer %d takes %d values, but its input has %d", branch.Name, i+1, l.W1.Shape[1], width)
			}
			if _, ok := values[l]; !ok {
				name := strings.TrimPrefix(fmt.Sprintf("%s/layer%d", branch.Name, i+1), "/")
				b.Output(name, b.Tanh(b.Gemm(below, b.Const(name+".weight", transposed(l.W1)), b.Const(name+".bias", l.B1), nil)))
				values[l] = onnx.Value(name)
			}
			below, width = values[l], l.W1.Shape[0]
		}
	}
	if len(values) == 0 {
		return nil, errors.New("stacking: at least one layer is needed")
	}
	return b.Model()
}

// Encode returns the activations of a layer of m units, p x m, on p patterns of n values, p x n.
// The next layer is trained on them.
func Encode(ctx context.Context, rt *ort.Runtime, l *Layer, patterns tensor.Tensor) (tensor.Tensor, error) {
	b := onnx.NewBuilder(onnx.DefaultOpset)
	x := b.Input("x", onnx.Float, -1, l.W1.Shape[1])
	b.Output("h", b.Tanh(b.Gemm(x, b.Const("w", l.W1), b.Const("b", l.B1), onnx.Attrs{"transB": 1})))
	m, err := b.Model()
	if err != nil {
		return tensor.Tensor{}, err
	}
	s, err := rt.NewSession(m, ort.Options{})
	if err != nil {
		return tensor.Tensor{}, err
	}
	defer s.Close()
	out := tensor.New(patterns.Shape[0], l.W1.Shape[0])
	return out, encode(ctx, rt, s, patterns, out)
}

// encode runs a session on x, p x n, batch by batch, and stores its output in h, p x m.
func encode(ctx context.Context, rt *ort.Runtime, s *ort.Session, x, h tensor.Tensor) error {
	const batchSize = 4096
	n, m := x.Shape[1], h.Shape[1]
	for at := 0; at < x.Shape[0]; at += batchSize {
		rows := min(batchSize, x.Shape[0]-at)
		in, err := rt.NewValue(onnx.Float, rows, n)
		if err != nil {
			return err
		}
		out, err := rt.NewValue(onnx.Float, rows, m)
		if err == nil {
			copy(ort.Data[float32](in), x.Data[at*n:])
			if err = s.Run(ctx, []*ort.Value{in}, []*ort.Value{out}); err == nil {
				for i, v := range ort.Data[float32](out) {
					h.Data[at*m+i] = min(max(v, -1), 1) // ONNX Runtime's tanh can slightly exceed 1
				}
			}
			out.Close()
		}
		in.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// Images returns the filters of the units of the top layer, each channels x side x side. For the
// first layer these are the rows of W1, for deeper layers the linear combinations of the filters
// below, weighted by W1. This treats units as linear (Goodfellow et al. 2009, figure 4).
func Images(side, channels int, layers ...*Layer) []tensor.Tensor {
	images := layers[0].W1
	for _, l := range layers[1:] {
		images = product(l.W1, images)
	}
	out := make([]tensor.Tensor, images.Shape[0])
	for i := range out {
		out[i] = tensor.New(channels, side, side)
		copy(out[i].Data, images.Data[i*images.Shape[1]:][:images.Shape[1]])
	}
	return out
}

func product(a, b tensor.Tensor) tensor.Tensor {
	out := tensor.New(a.Shape[0], b.Shape[1])
	for i := range a.Shape[0] {
		row := out.Data[i*b.Shape[1]:][:b.Shape[1]]
		for k := range a.Shape[1] {
			w := a.Data[i*a.Shape[1]+k]
			for j, v := range b.Data[k*b.Shape[1]:][:b.Shape[1]] {
				row[j] += w * v
			}
		}
	}
	return out
}
