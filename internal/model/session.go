package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/tensor"
)

// A Session runs a model and returns some of its layers and, optionally, class scores. Several
// goroutines may use it, each with its own Buffers.
type Session struct {
	model   *Model
	session engine.Session
	outputs []engine.Output
	layers  int                     // number of layers, which come first in outputs
	scores  int                     // index of the scores among the outputs, or -1
	workers int                     // parts of a batch that run in parallel
	lends   bool                    // the outputs may be in memory of the engine
	pools   map[string]pooling.Kind // of layers that are read as vectors; the others are whole
	largest atomic.Int32            // number of images that fit in the device's memory in one run; 0: not limited
	pair    *pair                   // what connects the two sessions of a pair; else nil
	same    []int                   // of each output, the first with the same elements, which its tensor shares; nil: each is the first
	given   map[string]int          // of a forced session: index of the layer whose values an input takes; else nil

	mutex   sync.Mutex
	buffers []*Buffers
}

// NewSession returns a session for layers, in that order, and for class scores if withScores is
// set. The layers must be elements of m.Layers(), or m.DecodedLayer().
func (m *Model) NewSession(layers []tensor.Layer, withScores bool) (*Session, error) {
	return m.newSession(layers, withScores, 1, nil, nil)
}

// NewBatchSession returns a session for batches of the given size. For large batches it runs parts
// in parallel, each on some of the cores: cores that share an operator wait for each other at its
// end. Layers in pools are pooled: see CanPool. Activations are invalid after Close.
func (m *Model) NewBatchSession(layers []tensor.Layer, withScores bool, batch int, pools map[string]pooling.Kind) (*Session, error) {
	s, err := m.newSession(layers, withScores, m.workersFor(batch), nil, pools)
	if err == nil {
		s.lends = true
	}
	return s, err
}

// minPartImages is the least number of images of a parallel part; fewer are slower per image.
const minPartImages = 8

// workersFor returns the largest divisor of the number of cores that leaves minPartImages images
// for every part, 1 for a fixed batch.
func (m *Model) workersFor(batch int) int {
	cores := m.Workers()
	for parallel := cores; parallel > 1 && m.batch == 0; parallel-- {
		if cores%parallel == 0 && batch >= parallel*minPartImages {
			return parallel
		}
	}
	return 1
}

func (m *Model) newSession(layers []tensor.Layer, withScores bool, parallel int, p *pair, pools map[string]pooling.Kind) (*Session, error) {
	s := &Session{model: m, layers: len(layers), scores: -1, workers: parallel, pair: p, pools: pools}
	if err := s.plan(layers, withScores); err != nil {
		return nil, m.wrap(err)
	}
	if p == nil {
		s.findSame()
	}
	request := engine.Request{Parallel: parallel}
	for i, o := range s.outputs {
		if !s.shares(i) {
			request.Outputs = append(request.Outputs, o)
		}
	}
	if p.transforms() {
		request.Reductions = p.reductions
		for i, r := range p.reductions {
			s.outputs = append(s.outputs, engine.Output{Name: fmt.Sprintf("reduction %d", i), Shape: []int{r.Values.Width}})
		}
	}
	var err error
	if s.session, err = m.net.Open(context.Background(), request); err != nil {
		return nil, m.wrap(err)
	}
	return s, nil
}

// The scores may be one of the layers.
func (s *Session) plan(layers []tensor.Layer, withScores bool) error {
	chosen := make(map[string][]int, len(s.model.layers)) // shapes of the available layers, by name
	for _, l := range s.model.layers {
		chosen[l.Name] = l.Shape
	}
	if s.model.decoder != nil {
		chosen[decodedName] = s.model.decoder.Format.Shape()
	}
	for _, l := range layers {
		if shape, ok := chosen[l.Name]; !ok || !slices.Equal(shape, l.Shape) {
			return fmt.Errorf("layer %q was not chosen when the model was opened", l.Name)
		}
		s.outputs = append(s.outputs, s.layer(l))
	}
	if withScores {
		if s.model.scores.classes == 0 {
			return errors.New("the model has no output that scores classes: measures of predictions do not apply")
		}
		name := s.model.scores.output
		s.scores = slices.IndexFunc(s.outputs, func(o engine.Output) bool { return o.Name == name })
		if s.scores < 0 {
			s.scores = len(s.outputs)
			s.outputs = append(s.outputs, engine.Output{Name: name, Shape: []int{s.model.scores.width()}, Convert: true})
		}
	}
	if s.pair != nil && !s.pair.transformed {
		for _, l := range s.pair.layers {
			s.outputs = append(s.outputs, engine.Output{Name: l.Name, Shape: l.Shape, Keep: true})
		}
	}
	if len(s.outputs) == 0 && !s.pair.transforms() {
		return errors.New("a session needs at least one layer or the scores")
	}
	return nil
}

// findSame finds outputs that differ in shape only, such as a feature map and its flattened form. The
// engine would compute a copy of each.
func (s *Session) findSame() {
	if s.model.source == nil {
		return
	}
	views, first := s.model.Graph().Views(), map[string]int{}
	s.same = make([]int, len(s.outputs))
	for i, o := range s.outputs {
		s.same[i] = i
		if o.Convert || o.Name == decodedName { // which Session.complete changes
			continue
		}
		of := cmp.Or(views[o.Name], o.Name)
		if k, ok := first[of]; ok && tensor.Size(s.outputs[k].Shape) == tensor.Size(o.Shape) {
			s.same[i] = k
		} else if !ok {
			first[of] = i
		}
	}
}

// shares reports whether the tensor of an output is that of another one.
func (s *Session) shares(i int) bool { return i < len(s.same) && s.same[i] != i }

// layer returns the output of a layer, whole or pooled.
func (s *Session) layer(l tensor.Layer) engine.Output {
	kind := s.pools[l.Name]
	if kind == "" {
		return engine.Output{Name: l.Name, Shape: l.Shape}
	}
	return engine.Output{Name: l.Name, Shape: []int{kind.Dim(l)}, Pool: &engine.Pool{Kind: string(kind), Axes: kind.Axes(l), From: kind.From(l)}}
}

// CanPool reports whether sessions can have a pooled layer. Buffers.Layer then returns vectors, n x
// kind.Dim(l). The output with class scores, and a layer that has nothing to pool, stay whole.
func (m *Model) CanPool(l tensor.Layer, kind pooling.Kind) bool {
	return m.net.Limits().Pools && l.Name != m.scores.output && len(kind.Axes(l)) > 0 && kind.Check(l) == nil
}

// Close frees the session and its buffers. Their activations stay valid, unless NewBatchSession
// returned the session.
func (s *Session) Close() error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, b := range s.buffers {
		b.free()
	}
	s.buffers = nil
	return s.session.Close()
}

// Run writes the layers, and the scores if any, of at most buf.Cap() images to buf. An image is
// channels x height x width, of the size in Model.Frame, with values in [0, 1], not normalised. It
// does not check that activations are finite.
func (s *Session) Run(ctx context.Context, images []tensor.Tensor, buf *Buffers) error {
	if err := s.check(images, buf); err != nil {
		return s.model.wrap(err)
	}
	buf.n = 0
	if err := s.runFitting(ctx, images, buf); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return s.model.wrap(err)
	}
	buf.n = len(images)
	s.complete(buf) // removes weak and overlapping boxes from a decoded output
	return nil
}

// runFitting halves the size of the parts while the device has too little memory for one.
func (s *Session) runFitting(ctx context.Context, images []tensor.Tensor, buf *Buffers) error {
	for {
		if n := int(s.largest.Load()); n > 0 && buf.size > n && s.model.batch == 0 {
			if err := buf.divide(n); err != nil {
				return err
			}
		}
		err := s.runParts(ctx, images, buf)
		if !errors.Is(err, engine.ErrDeviceMemory) || buf.size == 1 || s.model.batch > 0 || s.pair != nil {
			return err
		}
		half := (buf.size + 1) / 2
		s.model.Note("model %s: the device has too little memory for %d images at once: running %d at a time", s.model.name, buf.size, half)
		s.largest.Store(int32(half))
	}
}

func (s *Session) runParts(ctx context.Context, images []tensor.Tensor, buf *Buffers) error {
	group, running := errgroup.WithContext(ctx)
	group.SetLimit(s.workers)
	for at, k := 0, 0; at < len(images) && running.Err() == nil; k++ {
		batch := images[at:min(at+buf.size, len(images))]
		part, err := buf.part(k, len(batch))
		if err != nil {
			_ = group.Wait() // runs still use the buffers
			return err
		}
		samples := buf.identity
		if samples.Index != nil {
			samples.Index = samples.Index[at:][:len(batch)]
		}
		from := at
		at += len(batch)
		buf.latest = part
		group.Go(func() error {
			if s.model.TakesInput() {
				buf.fill(batch, part.inputs)
			}
			if err := buf.giveRows(from, part.inputs); err != nil {
				return err
			}
			return s.session.Run(running, engine.Batch{Inputs: buf.withClean(part.inputs), Outputs: part.outputs, Samples: samples})
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

func (s *Session) check(images []tensor.Tensor, buf *Buffers) error {
	if buf.session != s {
		return errors.New("the buffers belong to another session")
	}
	if n := len(buf.identity.Index); n > 0 && n != len(images) {
		return fmt.Errorf("a batch of %d images with the indices of %d", len(images), n)
	}
	if len(images) > buf.batch {
		return fmt.Errorf("a batch of %d images is larger than the buffers, %d", len(images), buf.batch)
	}
	for i, t := range images {
		if err := s.model.input.check(t); err != nil {
			return fmt.Errorf("image %d of the batch: %w", i, err)
		}
	}
	return nil
}
