// Package enginetest provides a network for tests that need no ONNX file: a Go function.
//
//	net := &enginetest.Network{Input: []int{3, 8, 8}, Layer: []tensor.Layer{{Name: "mean", Shape: []int{1}, Axes: "NC"}},
//		Compute: func(x []float32, out [][]float32) { out[0][0] = mean(x) }}
//	m, err := model.Open(ctx, net, model.Options{Layers: []string{"all"}})
package enginetest

import (
	"context"
	"slices"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/tensor"
)

// A Network computes layers of single samples by a function. Its hash is its name.
type Network struct {
	Name    string
	Input   []int          // shape of one sample
	Layer   []tensor.Layer // all are outputs
	Compute func(x []float32, out [][]float32)
	Bounds  engine.Limits // at least one worker
}

func port(name string, shape []int) engine.Port {
	p := engine.Port{Name: name, Type: engine.Float, Shape: []engine.Dim{{Size: -1, Symbol: "batch"}}}
	for _, d := range shape {
		p.Shape = append(p.Shape, engine.Dim{Size: d})
	}
	return p
}

func (n *Network) Metadata() *engine.Metadata {
	m := &engine.Metadata{Name: n.Name, Inputs: []engine.Port{port("x", n.Input)}}
	for _, l := range n.Layer {
		m.Outputs = append(m.Outputs, port(l.Name, l.Shape))
	}
	return m
}

func (n *Network) Hash() (string, error) { return n.Name, nil }

func (n *Network) Limits() engine.Limits {
	l := n.Bounds
	l.Workers = max(l.Workers, 1)
	return l
}

func (n *Network) Layers(_ context.Context, s engine.Setup) (*engine.Layers, error) {
	out := &engine.Layers{All: n.Layer, Outputs: map[string][]int{}, Axes: map[string]tensor.Axes{}, Batch: s.Batch}
	for _, l := range n.Layer {
		out.Outputs[l.Name], out.Axes[l.Name] = l.Shape, l.Axes
	}
	return out, nil
}

func (n *Network) Open(_ context.Context, r engine.Request) (engine.Session, error) {
	return &session{n, r}, nil
}

func (n *Network) Close() error { return nil }

type session struct {
	*Network
	request engine.Request
}

func (s *session) Inputs() []string { return []string{"x"} }

func (s *session) Bind(*engine.Array) error { return nil }

func (s *session) Run(ctx context.Context, b engine.Batch) error {
	x := b.Inputs[0].Tensor()
	for i := range x.Shape[0] {
		out := make([][]float32, len(s.Layer))
		for k, l := range s.Layer {
			out[k] = make([]float32, tensor.Size(l.Shape))
		}
		if s.Compute != nil {
			s.Compute(x.At(i).Data, out)
		}
		for k, o := range s.request.Outputs {
			at := slices.IndexFunc(s.Layer, func(l tensor.Layer) bool { return l.Name == o.Name })
			copy(b.Outputs[k].Tensor().At(i).Data, out[at])
		}
	}
	return ctx.Err()
}
