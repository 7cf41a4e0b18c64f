package features

import (
	"context"
	"fmt"
	"io"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A Request says which representations are wanted: of which layers, on which samples, moved how, pooled how.
type Request struct {
	Model    *model.Model
	Identity string // tells the model with all its settings from every other; "": its SHA-256
	Engine   string // version and device of the engine
	Layers   []onnx.Layer
	Pool     Pooling

	Data string // fingerprint of the samples
	N    int    // of them
	// Read reads the samples at the given places, in order, framed. It may leave out those that cannot be read.
	Read func(ctx context.Context, places []int, f dataset.Frame) ([]dataset.Sample, error)

	View string                                   // tells the draws of Move from all others; "": the samples as they are
	Move func(sample dataset.Sample) transform.Op // nil: as they are

	Places   []int         // of the samples that are wanted, ascending; nil: all
	Memory   int64         // bytes that a table may take before it stays on disk
	Progress func(n int64) // told of samples that the engine has run; may be nil
}

// key tells a layer's representation from every other.
func (r *Request) key(l onnx.Layer, places []int) (string, error) {
	identity := r.Identity
	if identity == "" {
		identity = r.Model.SHA256()
	}
	return keyOf([]any{"layer", 1, identity, r.Engine, r.Data, r.N, fmt.Sprint(r.Model.Frame()), l.Name, l.Axes, r.Pool, r.View, places})
}

// Layers returns a table for each of the layers, in order: from the store where it has them, else by running the model, once for
// all that are missing. Where some places are asked for and the store has all of them, all are returned: see Table.Places.
func (s *Store) Layers(ctx context.Context, r Request) ([]*Table, error) {
	tables := make([]*Table, len(r.Layers))
	missing, err := s.find(&r, tables)
	if err == nil && len(missing) > 0 {
		if err = s.extract(ctx, &r, missing); err == nil {
			missing, err = s.find(&r, tables)
		}
		if err == nil && len(missing) > 0 {
			err = fmt.Errorf("the representations of %s went away as soon as they were there: is %s too small?", r.Layers[missing[0]].Name, s.Dir)
		}
	}
	if err != nil {
		for _, t := range tables {
			if t != nil {
				t.Close()
			}
		}
		return nil, err
	}
	return tables, nil
}

// find opens the tables that the store has and returns the indices of the others.
func (s *Store) find(r *Request, tables []*Table) (missing []int, err error) {
	for i, l := range r.Layers {
		if err := r.Pool.Check(l); err != nil {
			return nil, err
		}
		for _, places := range [][]int{nil, r.Places} {
			if tables[i] != nil {
				continue
			}
			key, err := r.key(l, places)
			if err != nil {
				return nil, err
			}
			if tables[i], err = s.table(key, r.Pool.Dim(l), r.Memory); err != nil {
				return nil, err
			}
		}
		if tables[i] == nil {
			missing = append(missing, i)
		}
	}
	return missing, nil
}

// extract runs the model and writes the tables of some layers.
func (s *Store) extract(ctx context.Context, r *Request, which []int) error {
	e := &extraction{Request: r, store: s}
	var keys []string
	for _, i := range which {
		key, err := r.key(r.Layers[i], r.Places)
		if err != nil {
			return err
		}
		e.layers, keys = append(e.layers, r.Layers[i]), append(keys, key)
		e.pools = append(e.pools, newPool(r.Pool, r.Layers[i]))
	}
	if r.View == "" && r.Places == nil {
		e.seen = &Samples{}
	}
	return s.writeAll(keys, nil, func(to []io.Writer) error { return e.run(ctx, to) })
}

// writeAll writes several files side by side: all of them whole, or none.
func (s *Store) writeAll(keys []string, open []io.Writer, fill func([]io.Writer) error) error {
	if len(keys) == 0 {
		return fill(open)
	}
	return s.write(keys[0], func(w io.Writer) error { return s.writeAll(keys[1:], append(open, w), fill) })
}

// An extraction is one walk through samples.
type extraction struct {
	*Request
	store  *Store
	layers []onnx.Layer
	pools  []*pool
	seen   *Samples // what is known of the samples; nil where it is not to be kept
}

const (
	batch = 32 // samples that go through the engine together
	chunk = 64 // samples that are read together, while others are in the engine
)

// loaded are samples with their places.
type loaded struct {
	places  []int
	samples []dataset.Sample
	err     error
}

func (e *extraction) run(ctx context.Context, to []io.Writer) error {
	writers := make([]*writer, len(to))
	for i, w := range to {
		var err error
		if writers[i], err = newWriter(w, e.pools[i].dim); err != nil {
			return err
		}
	}
	session, err := e.Model.NewSession(e.layers, false)
	if err != nil {
		return err
	}
	defer session.Close()
	buf, err := session.NewBuffers(batch)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for l := range e.read(ctx, e.Model.Frame()) {
		if l.err != nil {
			return l.err
		}
		for at := 0; at < len(l.samples); at += batch {
			end := min(at+batch, len(l.samples))
			if err := e.feed(ctx, session, buf, l.places[at:end], l.samples[at:end], writers); err != nil {
				return err
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, w := range writers {
		if err := w.end(); err != nil {
			return err
		}
	}
	if e.seen != nil {
		return e.store.keepSamples(e.Request, e.seen)
	}
	return nil
}

// read reads the samples ahead of its caller, until the context ends.
func (r *Request) read(ctx context.Context, f dataset.Frame) <-chan loaded {
	places := r.Places
	if places == nil {
		places = make([]int, r.N)
		for i := range places {
			places[i] = i
		}
	}
	out := make(chan loaded, 1)
	go func() {
		defer close(out)
		for at := 0; at < len(places); at += chunk {
			l := r.load(ctx, places[at:min(at+chunk, len(places))], f)
			select {
			case out <- l:
			case <-ctx.Done():
				return
			}
			if l.err != nil {
				return
			}
		}
	}()
	return out
}

// load reads some samples. Where some cannot be read, each is asked for alone to learn which.
func (r *Request) load(ctx context.Context, places []int, f dataset.Frame) loaded {
	samples, err := r.Read(ctx, places, f)
	if err != nil || len(samples) == len(places) {
		return loaded{places, samples, err}
	}
	var l loaded
	for i := range places {
		one, err := r.Read(ctx, places[i:i+1], f)
		if err != nil {
			return loaded{err: err}
		}
		if len(one) == 1 {
			l.places, l.samples = append(l.places, places[i]), append(l.samples, one[0])
		}
	}
	return l
}

// feed runs a batch and writes the rows of every layer.
func (e *extraction) feed(ctx context.Context, session *model.Session, buf *model.Buffers, places []int, samples []dataset.Sample, to []*writer) error {
	inputs := make([]tensor.Tensor, len(samples))
	for i, s := range samples {
		inputs[i] = s.Input
		if e.Move != nil {
			var err error
			if inputs[i], err = s.Apply(e.Move(s)); err != nil {
				return err
			}
		}
	}
	if err := session.Run(ctx, inputs, buf); err != nil {
		return err
	}
	for k, p := range e.pools {
		z := buf.Layer(k)
		row := make([]float32, p.dim)
		for i, s := range samples {
			one := z.At(i)
			if one.Finite() >= 0 {
				view := "clean"
				if e.Move != nil {
					view = "moved"
				}
				return fmt.Errorf("layer %s: %w", e.layers[k].Name, &measure.NonFinite{View: view, Index: s.Index, Name: s.Name})
			}
			p.apply(row, one.Data)
			if err := to[k].add(places[i], row); err != nil {
				return err
			}
		}
	}
	if e.seen != nil {
		e.seen.add(places, samples)
	}
	if e.Progress != nil {
		e.Progress(int64(len(samples)))
	}
	return nil
}
