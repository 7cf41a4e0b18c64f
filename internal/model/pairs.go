package model

import (
	"context"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Reduction is a function of the activations of a layer for a batch of images, clean and
// transformed, that is computed in the graph of the model.
type Reduction struct {
	Layer tensor.Layer
	Width int // number of values for each image
	// Build adds the function to a graph and returns its result, n x Width. clean and transformed
	// are n x the shape of the layer. partners are indices of images of the batch, n x int32, one for
	// each image: see Session.RunTransformed.
	Build func(b *onnx.Builder, clean, transformed, partners onnx.Value) onnx.Value
}

// A pair connects the two sessions of NewPairSessions.
type pair struct {
	reductions  []Reduction
	layers      []tensor.Layer // the layers of the reductions, each once
	transformed bool           // whether this is the session for transformed images
}

// NewPairSessions returns two sessions, for clean and for transformed images. Both return layers
// and, with withScores, the class scores. The session for transformed images also returns
// reductions (see Buffers.Reduction), whose layers stay on the device. A batch is one run of the
// engine.
func (m *Model) NewPairSessions(layers []tensor.Layer, reductions []Reduction, withScores bool) (clean, transformed *Session, err error) {
	p := pair{reductions: reductions}
	for _, r := range reductions {
		if !slices.ContainsFunc(p.layers, func(l tensor.Layer) bool { return l.Name == r.Layer.Name }) {
			p.layers = append(p.layers, r.Layer)
		}
	}
	var sessions [2]*Session
	for i := range sessions {
		side := p
		side.transformed = i == 1
		s := &Session{model: m, layers: len(layers), scores: -1, workers: 1, pair: &side}
		if err := s.open(layers, withScores); err != nil {
			if i == 1 {
				sessions[0].Close()
			}
			return nil, nil, m.wrap(err)
		}
		sessions[i] = s
	}
	return sessions[0], sessions[1], nil
}

// CanPair reports whether NewPairSessions can be used: the model must take any number of images.
func (m *Model) CanPair() bool { return m.batch == 0 }

// outputs returns the outputs that the pair adds to a session: layers of clean images, which stay on
// the device, or reductions.
func (p *pair) outputs() (list []sessionOutput) {
	if !p.transformed {
		for _, l := range p.layers {
			list = append(list, sessionOutput{name: l.Name, shape: l.Shape, kept: true})
		}
		return list
	}
	for i, r := range p.reductions {
		list = append(list, sessionOutput{name: reductionName(i), shape: []int{r.Width}})
	}
	return list
}

// Names of the inputs and outputs that a pair adds to the graph for transformed images.
const partnersName = "partners of images"

func cleanName(layer string) string { return "clean " + layer }

func reductionName(i int) string { return fmt.Sprintf("reduction %d", i) }

// build adds the reductions to the graph for transformed images.
func (p *pair) build(b *onnx.Builder) {
	if !p.transformed {
		return
	}
	for _, l := range p.layers {
		b.Input(cleanName(l.Name), onnx.Float, append([]int{-1}, l.Shape...)...)
	}
	partners := b.Input(partnersName, onnx.Int32, -1)
	for i, r := range p.reductions {
		l := r.Layer.Name
		out := r.Build(b, onnx.Value(cleanName(l)), onnx.Value(l), partners)
		b.OutputInfo(onnx.ValueInfo{Name: reductionName(i), Type: onnx.Float}, out)
	}
}

// inputValues returns values for the named inputs of the graph for n images. Those of clean layers
// are nil: each run gets the outputs of another session.
func (s *Session) inputValues(names []string, n int) ([]*ort.Value, error) {
	var own []string
	for _, name := range names {
		if !s.addedInput(name) {
			own = append(own, name)
		}
	}
	values, err := s.model.inputValues(own, n)
	if err != nil {
		return values, err
	}
	for i, name := range names {
		if !s.addedInput(name) {
			continue
		}
		var v *ort.Value
		if name == partnersName {
			if v, err = s.model.rt.NewValue(onnx.Int32, n); err != nil {
				return values, err
			}
		}
		values = slices.Insert(values, i, v)
	}
	return values, nil
}

// addedInput reports whether the pair has added an input to the graph.
func (s *Session) addedInput(name string) bool {
	return s.pair != nil && s.pair.transformed &&
		(name == partnersName || slices.ContainsFunc(s.pair.layers, func(l tensor.Layer) bool { return name == cleanName(l.Name) }))
}

// RunTransformed is Run for the second session of a pair: images are the transformed images of
// those that the first session has run last with the buffers clean. partners has an index of a clean
// image for each of them.
func (s *Session) RunTransformed(ctx context.Context, images []tensor.Tensor, partners []int, clean, buf *Buffers) error {
	if s.pair == nil || !s.pair.transformed || clean.session.pair == nil || clean.n != len(images) || len(partners) != len(images) {
		return s.model.wrap(fmt.Errorf("running %d transformed images with %d partners: they must be those of the clean batch of %d images", len(images), len(partners), clean.n))
	}
	buf.clean, buf.partners = clean, partners
	defer func() { buf.clean, buf.partners = nil, nil }()
	return s.Run(ctx, images, buf)
}

// withClean returns the inputs of a run with those that the pair has added.
func (b *Buffers) withClean(inputs []*ort.Value) []*ort.Value {
	s := b.session
	if s.pair == nil || !s.pair.transformed {
		return inputs
	}
	inputs = slices.Clone(inputs)
	for i, name := range s.session.Inputs() {
		if name == partnersName {
			for j, p := range b.partners {
				ort.Data[int32](inputs[i])[j] = int32(p)
			}
		}
		for j, o := range b.clean.session.outputs {
			if o.kept && name == cleanName(o.name) {
				inputs[i] = b.clean.latest.outputs[j]
			}
		}
	}
	return inputs
}

// Reduction returns the result of the i-th Reduction of the session's pair for the images of the
// last batch, n x its Width. The next batch overwrites it.
func (b *Buffers) Reduction(i int) tensor.Tensor {
	first := len(b.outputs) - len(b.session.pair.reductions)
	return b.outputs[first+i].Slice(0, b.n)
}
