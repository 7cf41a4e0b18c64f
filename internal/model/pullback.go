package model

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Pullback computes a tensor of a model that is no graph, and gradients with respect to the
// input. A graph of the caller surrounds it: IncludeInput is before it, and IncludeOutput after it.
type Pullback struct {
	model             *Model
	forward, backward engine.Session
	output            engine.Output
}

// OpenPullback returns a Pullback of a tensor: a layer, or ScoresTensor.
func (m *Model) OpenPullback(ctx context.Context, tensor string) (*Pullback, error) {
	p, err := m.openPullback(ctx, tensor)
	if err != nil {
		return nil, m.wrap(err)
	}
	return p, nil
}

func (m *Model) openPullback(ctx context.Context, tensor string) (*Pullback, error) {
	net, ok := m.net.(engine.Differentiable)
	if !ok || net.NoVJP() != "" {
		return nil, errors.New(m.NoGradient())
	}
	p := &Pullback{model: m, output: engine.Output{Name: m.networkName(tensor), Shape: m.TensorShape(tensor), Convert: true}}
	r := engine.Request{Outputs: []engine.Output{p.output}}
	var err error
	if p.forward, err = net.OpenVJP(ctx, r); err != nil {
		return nil, err
	}
	if p.backward, err = net.OpenVJP(ctx, r, m.input.info.Name); err != nil {
		return nil, errors.Join(err, p.forward.Close())
	}
	return p, nil
}

// TensorShape returns the shape of one sample of a tensor of a model that is no graph: a layer or
// ScoresTensor, as the network has it.
func (m *Model) TensorShape(tensor string) []int {
	name := m.networkName(tensor)
	for _, l := range m.all {
		if l.Name == name && l.Shape != nil {
			return l.Shape
		}
	}
	return []int{m.scores.width()}
}

// InputShape returns the shape of the input for n samples.
func (m *Model) InputShape(n int) []int {
	_, shape, _ := m.input.typeAndShape(m.input.info.Name, n)
	return shape
}

// IncludeInput adds the preprocessing of images (see Include) to a graph and returns the input of
// the network, as float32.
func (m *Model) IncludeInput(b *onnx.Builder, images onnx.Value) onnx.Value {
	in := m.input
	in.info.Type = engine.Float
	return in.normalise(b, images)
}

// IncludeOutput returns what Include returns for a tensor, given the tensor of the network.
func (m *Model) IncludeOutput(b *onnx.Builder, tensor string, z onnx.Value) onnx.Value {
	if tensor == m.ScoresTensor() {
		return m.ofAllClasses(b, z)
	}
	return z
}

// Forward computes the tensor z for the input x, both as float32.
func (p *Pullback) Forward(ctx context.Context, x, z tensor.Tensor) error {
	return p.run(ctx, p.forward, x, nil, engine.ArrayOf(z))
}

// Backward computes dx, the gradient of the sum of z dz with respect to x.
func (p *Pullback) Backward(ctx context.Context, x, dz, dx tensor.Tensor) error {
	z := engine.NewArray(engine.Float, dz.Shape...)
	return p.run(ctx, p.backward, x, engine.ArrayOf(dz), z, engine.ArrayOf(dx))
}

func (p *Pullback) run(ctx context.Context, s engine.Session, x tensor.Tensor, cotangent *engine.Array, outputs ...*engine.Array) error {
	inputs, err := p.inputs(x)
	if err != nil {
		return p.model.wrap(err)
	}
	if cotangent != nil {
		inputs = append(inputs, cotangent)
	}
	for _, a := range slices.Concat(inputs, outputs) {
		if err := s.Bind(a); err != nil {
			return p.model.wrap(err)
		}
		defer a.Close()
	}
	if err := s.Run(ctx, engine.Batch{Inputs: inputs, Outputs: outputs}); err != nil {
		return p.model.wrap(err)
	}
	return nil
}

// inputs returns the inputs of the network for samples x.
func (p *Pullback) inputs(x tensor.Tensor) ([]*engine.Array, error) {
	var out []*engine.Array
	for _, port := range p.model.inputs {
		a, err := p.model.inputArray(port.Name, x.Shape[0])
		switch {
		case err != nil:
			return nil, err
		case port.Name == p.model.input.info.Name && port.Type == engine.Float:
			a = engine.ArrayOf(x)
		case port.Name == p.model.input.info.Name && port.Type == engine.Double:
			for i, v := range x.Data {
				a.Data.([]float64)[i] = float64(v)
			}
		case port.Name == p.model.input.info.Name:
			return nil, fmt.Errorf("has an input of type %s, which has no gradient", port.Type)
		}
		out = append(out, a)
	}
	return out, nil
}

// Close closes the sessions.
func (p *Pullback) Close() error { return errors.Join(p.forward.Close(), p.backward.Close()) }
