package model

import (
	"context"
	"errors"
	"slices"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/tensor"
)

// A Pushforward computes tensors of a model that is no graph, and their tangents: derivatives along
// a direction. See engine.ForwardDifferentiable, and Pullback for the graphs around it.
type Pushforward struct {
	Pullback // without its sessions
	session  engine.Session
	outputs  []engine.Output
}

// NoTangents returns why OpenPushforward fails for a model that is no graph, or "".
func (m *Model) NoTangents() string {
	net, ok := m.net.(engine.ForwardDifferentiable)
	switch {
	case !m.TakesInput():
		return "is a folder of recorded activations, which cannot run"
	case !ok:
		return "is no ONNX graph, of which derivatives are computed"
	}
	return net.NoJVP()
}

// OpenPushforward returns a Pushforward of tensors: layers, or ScoresTensor. With byInput the input
// has a tangent. Tangents replace those of the layers in at.
func (m *Model) OpenPushforward(ctx context.Context, tensors []string, byInput bool, at ...string) (*Pushforward, error) {
	net, ok := m.net.(engine.ForwardDifferentiable)
	if !ok || net.NoJVP() != "" {
		return nil, m.wrap(errors.New(m.NoTangents()))
	}
	p := &Pushforward{Pullback: Pullback{model: m}}
	for _, name := range tensors {
		p.outputs = append(p.outputs, engine.Output{Name: m.networkName(name), Shape: m.TensorShape(name), Convert: true})
	}
	var given []string
	if byInput {
		given = append(given, m.input.info.Name)
	}
	for _, name := range at {
		given = append(given, m.networkName(name))
	}
	var err error
	if p.session, err = net.OpenJVP(ctx, engine.Request{Outputs: p.outputs}, given...); err != nil {
		return nil, m.wrap(err)
	}
	return p, nil
}

// networkName returns the name in the network of a layer or ScoresTensor.
func (m *Model) networkName(tensor string) string {
	if tensor == m.ScoresTensor() {
		return m.scores.output
	}
	return tensor
}

// Run computes the tensors for the input x and, after them, their tangents, given those of the input
// and the layers.
func (p *Pushforward) Run(ctx context.Context, x tensor.Tensor, tangents ...tensor.Tensor) ([]tensor.Tensor, error) {
	inputs, err := p.inputs(x)
	if err != nil {
		return nil, p.model.wrap(err)
	}
	for _, t := range tangents {
		inputs = append(inputs, engine.ArrayOf(t))
	}
	var outputs []*engine.Array
	var found []tensor.Tensor
	for range 2 {
		for _, o := range p.outputs {
			a := engine.NewArray(engine.Float, append([]int{x.Shape[0]}, o.Shape...)...)
			outputs, found = append(outputs, a), append(found, a.Tensor())
		}
	}
	for _, a := range slices.Concat(inputs, outputs) {
		if err := p.session.Bind(a); err != nil {
			return nil, p.model.wrap(err)
		}
		defer a.Close()
	}
	if err := p.session.Run(ctx, engine.Batch{Inputs: inputs, Outputs: outputs}); err != nil {
		return nil, p.model.wrap(err)
	}
	return found, nil
}

// Close closes the session.
func (p *Pushforward) Close() error { return p.session.Close() }
