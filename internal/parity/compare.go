package parity

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// Samples are the samples that both models get. Order holds their indices in a random order, which
// Layout divides into groups.
type Samples struct {
	Source dataset.Source
	Order  []int
	Layout measure.Layout
}

// Options are the options of Compare that its results do not depend on.
type Options struct {
	Memory   int64                 // of the activations of a batch, in bytes; 0: 256 MiB
	Progress func(done, total int) // called after each batch; may be nil
}

// A Layer is a pair with its statistics.
type Layer struct {
	Pair
	Inputs      []string        // matched layers of the original that it reads
	Nodes       []string        // names of the original's nodes between these and the layer
	Unnamed     int             // number of such nodes without a name
	Accumulated []measure.Score // each statistic; nil if the values are not finite
	Local       []measure.Score // the same for the local error; nil: not known
	Warnings    []string
}

// A Result holds what Compare found.
type Result struct {
	Layers  []Layer
	Dropped []Pair // matches by order that the values do not confirm
	NoLocal string // why there are no local errors; "": there are
	N       int    // samples
}

// Compare runs both models on the samples, batch by batch, and returns the statistics of the pairs.
// No activation is kept. Samples that cannot be read are left out. Pairs that are not certain and
// whose values differ are dropped, and the others compared again without them.
func Compare(ctx context.Context, original, other *model.Model, pairs []Pair, s Samples, o Options) (*Result, error) {
	if len(pairs) == 0 {
		return nil, errors.New("the models have no layer in common")
	}
	r := &Result{Layers: make([]Layer, len(pairs))}
	matched, g := map[string]bool{}, networkOf(original)
	for _, p := range pairs {
		matched[p.Original.Name] = true
	}
	for i, p := range pairs {
		l := &r.Layers[i]
		l.Pair = p
		nodes, inputs := g.segment(p.Original.Name, matched)
		l.Inputs = inputs
		for _, n := range nodes {
			if name := n.GetName(); name != "" {
				l.Nodes = append(l.Nodes, name)
			} else {
				l.Unnamed++
			}
		}
	}
	c, err := newComparer(original, other, r, s.Layout, o)
	if err != nil {
		return nil, err
	}
	defer c.close()
	if err := c.run(ctx, s, o.Progress); err != nil {
		return nil, err
	}
	if err := c.finish(); err != nil {
		return nil, err
	}
	var kept, dropped []Pair
	for i := range r.Layers {
		if r.Layers[i].unconfirmed() {
			dropped = append(dropped, r.Layers[i].Pair)
		} else {
			kept = append(kept, r.Layers[i].Pair)
		}
	}
	if len(dropped) == 0 || len(kept) == 0 {
		return r, nil
	}
	if r, err = Compare(ctx, original, other, kept, s, o); err == nil { // wrong matches spoil local errors
		r.Dropped = append(dropped, r.Dropped...)
	}
	return r, err
}

// alike is a relative l2 distance that different layers of a network do not come near.
const alike = 0.5

// unconfirmed reports whether a match that is not certain may be wrong, by its values.
func (l *Layer) unconfirmed() bool {
	return l.Doubt != "" && !(Value(l.Accumulated, RelativeL2) < alike)
}

// A comparer runs the models on one batch after the other.
type comparer struct {
	models   [2]*model.Model
	result   *Result
	sessions []*model.Session // of the original and the other, then the forced one if there is one
	buffers  []*model.Buffers
	sums     [][2]measure.Accumulator // of each pair, accumulated and local; nil once values are not finite, or without local errors
	scratch  [][2][]float32           // memory for turned values of each pair
	batch    int
}

func newComparer(original, other *model.Model, r *Result, layout measure.Layout, o Options) (c *comparer, err error) {
	c = &comparer{models: [2]*model.Model{original, other}, result: r, sums: make([][2]measure.Accumulator, len(r.Layers)), scratch: make([][2][]float32, len(r.Layers))}
	var layers [2][]tensor.Layer
	var forced []model.Forced
	bytes := original.InputBytes() + other.InputBytes()
	for _, l := range r.Layers {
		layers[0], layers[1] = append(layers[0], l.Original), append(layers[1], l.Other)
		forced = append(forced, model.Forced{Layer: l.Other, Same: l.same})
		bytes += 5 * 4 * int64(tensor.Size(l.Original.Shape)) // of three outputs, an input and a turned copy
	}
	if o.Memory == 0 {
		o.Memory = 256 << 20
	}
	c.batch = int(min(32, max(1, o.Memory/bytes)))
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	for i, m := range c.models {
		session, err := m.NewBatchSession(layers[i], false, c.batch, nil)
		if err != nil {
			return nil, err
		}
		if err := c.add(session); err != nil {
			return nil, err
		}
	}
	if other.Graph() == nil {
		r.NoLocal = "the other model is no ONNX graph, of which parts could run on their own"
	} else if session, err := other.NewForcedSession(forced); err != nil {
		r.NoLocal = err.Error()
	} else if err := c.add(session); err != nil {
		return nil, err
	}
	for i, l := range r.Layers {
		for k := range c.sums[i] {
			if k == 1 && r.NoLocal != "" {
				continue
			}
			if c.sums[i][k], err = newSums(l.Original, layout, l.span); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

func (c *comparer) add(s *model.Session) error {
	c.sessions = append(c.sessions, s)
	b, err := s.NewBuffers(c.batch)
	c.buffers = append(c.buffers, b)
	return err
}

func (c *comparer) close() {
	for _, s := range c.sessions {
		s.Close()
	}
}

// run reads the samples in the frame of each model.
func (c *comparer) run(ctx context.Context, s Samples, progress func(done, total int)) error {
	frames := []dataset.Frame{c.models[0].Frame()}
	if f := c.models[1].Frame(); f != frames[0] {
		frames = append(frames, f)
	}
	var next []func() (dataset.Sample, error, bool)
	for _, f := range frames {
		n, stop := iter.Pull2(dataset.Read(ctx, s.Source, s.Order, f, dataset.ReadOptions{}))
		defer stop()
		next = append(next, n)
	}
	b := measure.Batch{}
	inputs := make([][]tensor.Tensor, len(frames))
	for place := range s.Order {
		var found []dataset.Sample
		var bad *dataset.BadSample
		for _, n := range next {
			sample, err, ok := n()
			if !ok {
				return ctx.Err()
			}
			if err != nil && !errors.As(err, &bad) {
				return err
			}
			found = append(found, sample)
		}
		if bad == nil {
			for k, sample := range found {
				inputs[k] = append(inputs[k], sample.Input)
			}
			b.Place, b.Index, b.Label = append(b.Place, place), append(b.Index, found[0].Index), append(b.Label, measure.NoLabel)
		}
		if len(b.Place) < c.batch && place+1 < len(s.Order) || len(b.Place) == 0 {
			continue
		}
		if err := c.update(ctx, b, inputs); err != nil {
			return err
		}
		c.result.N += len(b.Place)
		if progress != nil {
			progress(place+1, len(s.Order))
		}
		b = measure.Batch{}
		clear(inputs)
	}
	return ctx.Err()
}

// update runs the sessions on a batch and adds it to the sums. inputs has the samples in each
// frame.
func (c *comparer) update(ctx context.Context, b measure.Batch, inputs [][]tensor.Tensor) error {
	for k := range 2 {
		c.buffers[k].Identify(engine.Samples{Index: b.Index})
		if err := c.sessions[k].Run(ctx, inputs[min(k, len(inputs)-1)], c.buffers[k]); err != nil {
			return err
		}
	}
	if c.result.NoLocal == "" {
		for i := range c.result.Layers {
			p := &c.result.Layers[i].Pair
			z := p.turn.inverse().apply(nil, c.buffers[0].Layer(i), p.Other.Shape)
			if err := c.buffers[2].Give(i, z); err != nil {
				return err
			}
		}
		if err := c.sessions[2].Run(ctx, inputs[len(inputs)-1], c.buffers[2]); err != nil {
			return err
		}
	}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range c.result.Layers {
		group.Go(func() error { return c.updateLayer(i, b) })
	}
	return group.Wait()
}

// updateLayer adds a batch to the sums of one layer.
func (c *comparer) updateLayer(i int, b measure.Batch) error {
	l := &c.result.Layers[i]
	b.Clean = c.buffers[0].Layer(i)
	for k, sum := range c.sums[i] {
		if sum == nil {
			continue
		}
		turned := l.turn.apply(c.scratch[i][k], c.buffers[1+k].Layer(i), l.Original.Shape)
		if l.turn != nil {
			c.scratch[i][k] = turned.Data
		}
		b.Transformed = turned
		err := sum.Update(&b)
		var bad *measure.NonFinite
		if errors.As(err, &bad) {
			which := map[string]string{"clean": "the original", "transformed": "the other model"}[bad.View]
			if k == 1 && bad.View == "transformed" {
				which = "the other model, computed from the original's values"
			}
			l.Warnings = append(l.Warnings, fmt.Sprintf("NaN or infinity in %s for sample %d", which, bad.Index))
			c.sums[i][k] = nil
			continue
		}
		if err != nil {
			return fmt.Errorf("layer %s: %w", l.Original.Name, err)
		}
	}
	return nil
}

// finish computes the statistics.
func (c *comparer) finish() error {
	for i := range c.result.Layers {
		l := &c.result.Layers[i]
		for k, to := range []*[]measure.Score{&l.Accumulated, &l.Local} {
			if c.sums[i][k] == nil {
				continue
			}
			scores, err := c.sums[i][k].Scores()
			if err != nil {
				return fmt.Errorf("layer %s: %w", l.Original.Name, err)
			}
			for _, s := range scores {
				if s.Statistic == RelativeL2 {
					*to = append(*to, s, snrOf(s))
				}
			}
			for _, s := range scores {
				if s.Statistic != RelativeL2 {
					*to = append(*to, s)
				}
			}
		}
	}
	return nil
}
