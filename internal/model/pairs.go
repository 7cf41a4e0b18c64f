package model

import (
	"context"
	"fmt"
	"slices"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/tensor"
)

type pair struct {
	reductions  []engine.Reduction
	layers      []tensor.Layer // the layers of the reductions, each once
	transformed bool           // whether this is the session for transformed images
}

// p may be nil.
func (p *pair) transforms() bool { return p != nil && p.transformed }

// NewPairSessions returns two sessions, for clean and for transformed images, that return layers
// and, with withScores, the class scores. The second also returns reductions, whose layers stay
// with the engine. A batch is one run of the engine.
func (m *Model) NewPairSessions(layers []tensor.Layer, reductions []engine.Reduction, withScores bool, pools map[string]pooling.Kind) (clean, transformed *Session, err error) {
	p := pair{reductions: reductions}
	for _, r := range reductions {
		if !slices.ContainsFunc(p.layers, func(l tensor.Layer) bool { return l.Name == r.Layer.Name }) {
			p.layers = append(p.layers, r.Layer)
		}
	}
	if clean, err = m.newSession(layers, withScores, 1, &p, pools); err != nil {
		return nil, nil, err
	}
	side := p
	side.transformed = true
	if transformed, err = m.newSession(layers, withScores, 1, &side, pools); err != nil {
		clean.Close()
		return nil, nil, err
	}
	return clean, transformed, nil
}

// CanPair reports whether NewPairSessions can be used: with any batch size and an engine that
// computes reductions.
func (m *Model) CanPair() bool { return m.batch == 0 && m.net.Limits().Reductions }

// Keeps reports whether the engine has a memory of its own, where activations can stay.
func (m *Model) Keeps() bool { return m.net.Limits().Keeps }

// inputArrays returns bound arrays for n images; those of clean layers, the outputs of another
// session, are nil.
func (s *Session) inputArrays(n int) (arrays []*engine.Array, err error) {
	for _, name := range s.session.Inputs() {
		var a *engine.Array
		switch {
		case s.cleanLayer(name) >= 0:
			arrays = append(arrays, nil)
			continue
		case s.isGiven(name):
			a = engine.NewArray(engine.Float, append([]int{n}, s.outputs[s.given[name]].Shape...)...)
		case name == engine.PartnersInput && s.pair.transforms():
			a = engine.NewArray(engine.Int32, n)
		default:
			if a, err = s.model.inputArray(name, n); err != nil {
				return arrays, err
			}
		}
		if err := s.session.Bind(a); err != nil {
			return arrays, err
		}
		arrays = append(arrays, a)
	}
	return arrays, nil
}

// cleanLayer returns the index in pair.layers of the clean layer that an input takes, or -1.
func (s *Session) cleanLayer(input string) int {
	if !s.pair.transforms() {
		return -1
	}
	return slices.IndexFunc(s.pair.layers, func(l tensor.Layer) bool { return input == engine.CleanInput(l.Name) })
}

// RunTransformed is Run for the second session of a pair: images are the transformed images of
// those that the first session has run last with the buffers clean. partners has an index of a
// clean image for each of them.
func (s *Session) RunTransformed(ctx context.Context, images []tensor.Tensor, partners []int, clean, buf *Buffers) error {
	if !s.pair.transforms() || clean.session.pair == nil || clean.n != len(images) || len(partners) != len(images) {
		return s.model.wrap(fmt.Errorf("running %d transformed images with %d partners: they must be those of the clean batch of %d images", len(images), len(partners), clean.n))
	}
	buf.clean, buf.partners = clean, partners
	defer func() { buf.clean, buf.partners = nil, nil }()
	return s.Run(ctx, images, buf)
}

func (b *Buffers) withClean(inputs []*engine.Array) []*engine.Array {
	s := b.session
	if !s.pair.transforms() {
		return inputs
	}
	inputs = slices.Clone(inputs)
	kept := b.clean.latest.outputs
	kept = kept[len(kept)-len(s.pair.layers):] // the last outputs of the clean session
	for i, name := range s.session.Inputs() {
		if name == engine.PartnersInput {
			for j, p := range b.partners {
				inputs[i].Data.([]int32)[j] = int32(p)
			}
		} else if at := s.cleanLayer(name); at >= 0 {
			inputs[i] = kept[at]
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

// RunsElsewhere reports whether runs take none of the cores of this process.
func (m *Model) RunsElsewhere() bool { return m.net.Limits().Elsewhere }
