package model

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/onnx/rewrite"
	"github.com/noether-ml/noether/tensor"
)

// A Forced is a layer whose values the caller gives, wherever the network reads it.
type Forced struct {
	Layer tensor.Layer
	Same  []string // other tensors that hold the same values, and are replaced by them too
}

// computedSuffix is what rewrite.TensorAsInput appends to the name of a tensor.
const computedSuffix = " computed"

// NewForcedSession returns a session that computes each of the layers from given values of the
// others: the part of the network between layers runs on its own, without the errors of the parts
// before. Buffers.Give sets the values, and Buffers.Layer returns what the network computes in
// their place. The model must be a graph.
func (m *Model) NewForcedSession(layers []Forced) (*Session, error) {
	s, err := m.newForcedSession(layers)
	if err != nil {
		return nil, m.wrap(err)
	}
	return s, nil
}

func (m *Model) newForcedSession(layers []Forced) (*Session, error) {
	if m.source == nil {
		return nil, errors.New("is no ONNX graph, whose layers can be given values")
	}
	s := &Session{model: m, layers: len(layers), scores: -1, workers: 1, given: map[string]int{}}
	var names []string
	for i, l := range layers {
		for _, name := range append([]string{l.Layer.Name}, l.Same...) {
			if _, ok := s.given[name]; ok {
				return nil, fmt.Errorf("layer %q is given twice", name)
			}
			s.given[name] = i
		}
		names = append(names, l.Layer.Name+computedSuffix)
		s.outputs = append(s.outputs, engine.Output{Name: names[i], Shape: l.Layer.Shape})
	}
	batch := onnx.Dim{Size: -1}
	if m.batch > 0 {
		batch.Size = m.batch
	}
	net, err := m.source.Rewrite(func(graph *onnx.Model) (_ *onnx.Model, err error) {
		for _, l := range layers {
			shape := []onnx.Dim{batch}
			for _, d := range l.Layer.Shape {
				shape = append(shape, onnx.Dim{Size: d})
			}
			graph = rewrite.ReadDequantised(graph, l.Layer.Name)
			for _, name := range append([]string{l.Layer.Name}, l.Same...) {
				if graph, err = rewrite.TensorAsInput(graph, onnx.ValueInfo{Name: name, Type: onnx.Float, Shape: shape}); err != nil {
					return nil, err
				}
			}
		}
		return rewrite.WithOutputs(graph, names)
	})
	if err != nil {
		return nil, err
	}
	s.session, err = net.Open(context.Background(), engine.Request{Outputs: s.outputs})
	return s, err
}

func (s *Session) isGiven(input string) bool {
	_, ok := s.given[input]
	return ok
}

// Give sets the values of layer i of a forced session for the next batch, n x shape.
func (b *Buffers) Give(i int, z tensor.Tensor) error {
	if l := b.session.outputs[i]; !slices.Equal(z.Shape[1:], l.Shape) || z.Shape[0] > b.batch {
		return b.session.model.wrap(fmt.Errorf("layer %q of shape %v and at most %d samples is given values of shape %v", l.Name, l.Shape, b.batch, z.Shape))
	}
	if b.given == nil {
		b.given = make([]tensor.Tensor, len(b.session.outputs))
	}
	b.given[i] = z
	return nil
}

// giveRows writes the rows from on of the given values to the inputs of a run.
func (b *Buffers) giveRows(from int, inputs []*engine.Array) error {
	if b.session.given == nil {
		return nil
	}
	for at, name := range b.session.session.Inputs() {
		i, ok := b.session.given[name]
		if !ok {
			continue
		}
		if b.given == nil || b.given[i].Shape == nil {
			return fmt.Errorf("layer %q of a forced session has no values", name)
		}
		z := b.given[i]
		copy(inputs[at].Data.([]float32), z.Data[from*tensor.Size(z.Shape[1:]):])
	}
	return nil
}
