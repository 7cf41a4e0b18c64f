package features

import (
	"context"
	"fmt"
	"io"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A Request specifies representations: the layers, the samples, their transformation and the
// pooling (how an activation becomes one vector, such as by the mean over positions).
type Request struct {
	Model    *model.Model
	Identity string // identifies the model with all its settings; "": its SHA-256
	Engine   string // version and device of the inference engine
	Layers   []tensor.Layer
	Pool     pooling.Kind

	Data string // fingerprint (hash) of the samples
	N    int    // number of samples
	// Read reads the samples at the given positions of the source, in order. f says how an image is
	// resized and cropped. Samples that cannot be read may be left out.
	Read func(ctx context.Context, positions []int, f dataset.Frame) ([]dataset.Sample, error)

	// View is a text that identifies the transformations that Transform returns; "": the samples are
	// not transformed.
	View      string
	Transform func(sample dataset.Sample) transform.Op // nil: no transformation
	Pairs     bool                                     // take Sample.Transformed, a pair in the data, in place of Transform

	Positions []int         // positions of the requested samples in the source, ascending; nil: all
	Memory    int64         // a table of more bytes is read from disk row by row
	Progress  func(n int64) // called after each forward pass with its number of samples; may be nil
}

func (r *Request) key(l tensor.Layer, positions []int) (string, error) {
	identity := r.Identity
	if identity == "" {
		identity = r.Model.SHA256()
	}
	const version = 1 // increased when the same request gives other representations
	return keyOf([]any{"layer", version, identity, r.Engine, r.Data, r.N, fmt.Sprint(r.Model.Frame()), l.Name, l.Axes, r.Pool.ID(l), r.View, positions})
}

// Layers returns a table for each layer of the request, in order. It runs the model once for all
// tables that the store does not have. If the request has Positions and the store has all samples,
// the table has all samples: see Table.Positions. The caller closes the tables.
func (s *Store) Layers(ctx context.Context, r Request) ([]*Table, error) {
	tables := make([]*Table, len(r.Layers))
	missing, err := s.openTables(&r, tables)
	if err == nil && len(missing) > 0 {
		if err = s.extract(ctx, &r, missing); err == nil {
			missing, err = s.openTables(&r, tables)
		}
		if err == nil && len(missing) > 0 {
			err = fmt.Errorf("the representations of %s were removed as soon as they were written: is the store %s too small?", r.Layers[missing[0]].Name, s.Dir)
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

// openTables opens the tables that the store has and returns the indices of the others, for which
// s.table returns nil.
func (s *Store) openTables(r *Request, tables []*Table) (missing []int, err error) {
	for i, l := range r.Layers {
		if err := r.Pool.Check(l); err != nil {
			return nil, err
		}
		for _, positions := range [][]int{nil, r.Positions} {
			if tables[i] != nil {
				continue
			}
			key, err := r.key(l, positions)
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

// extract runs the model and writes the tables of the layers with the given indices.
func (s *Store) extract(ctx context.Context, r *Request, indices []int) error {
	e := &extraction{Request: r, store: s}
	var keys []string
	for _, i := range indices {
		key, err := r.key(r.Layers[i], r.Positions)
		if err != nil {
			return err
		}
		e.layers, keys = append(e.layers, r.Layers[i]), append(keys, key)
		e.pools = append(e.pools, r.Pool.Pool(r.Layers[i]))
	}
	if r.View == "" && r.Positions == nil {
		e.samples = &Samples{}
	}
	return s.writeAll(keys, nil, func(to []io.Writer) error { return e.run(ctx, to) })
}

// writeAll writes several files. fill gets their writers, after those in open, and writes the
// contents. If fill fails, no file is written.
func (s *Store) writeAll(keys []string, open []io.Writer, fill func([]io.Writer) error) error {
	if len(keys) == 0 {
		return fill(open)
	}
	return s.write(keys[0], func(w io.Writer) error { return s.writeAll(keys[1:], append(open, w), fill) })
}

type extraction struct {
	*Request
	store   *Store
	layers  []tensor.Layer
	pools   []func(dst, z []float32) // of each layer; nil: the engine pools it
	samples *Samples                 // labels and factors (known properties) to save; nil if they are not saved
}

const (
	batch    = 32 // samples in a forward pass
	readSize = 64 // samples of one call of Request.Read, which runs while the model runs
)

// A sampleBatch holds samples with their positions, or the error of reading them.
type sampleBatch struct {
	positions []int
	samples   []dataset.Sample
	err       error
}

// run extracts the samples and writes a table to each writer, in the order of e.layers.
func (e *extraction) run(ctx context.Context, to []io.Writer) error {
	writers := make([]*writer, len(to))
	for i, w := range to {
		var err error
		if writers[i], err = newWriter(w, e.Pool.Dim(e.layers[i])); err != nil {
			return err
		}
	}
	pooled := map[string]pooling.Kind{} // by the engine
	for i, l := range e.layers {
		if e.Model.CanPool(l, e.Pool) {
			pooled[l.Name], e.pools[i] = e.Pool, nil
		}
	}
	session, err := e.Model.NewBatchSession(e.layers, false /* no class scores */, batch, pooled)
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
	for b := range e.read(ctx, e.Model.Frame()) {
		if b.err != nil {
			return b.err
		}
		for at := 0; at < len(b.samples); at += batch {
			end := min(at+batch, len(b.samples))
			if err := e.runBatch(ctx, session, buf, b.positions[at:end], b.samples[at:end], writers); err != nil {
				return err
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, w := range writers {
		if err := w.finish(); err != nil {
			return err
		}
	}
	if e.samples != nil {
		return e.store.saveSamples(e.Request, e.samples)
	}
	return nil
}

// read reads the samples of the request in the background. The channel is closed after the last
// sample, after an error, or when the context ends.
func (r *Request) read(ctx context.Context, f dataset.Frame) <-chan sampleBatch {
	positions := r.Positions
	if positions == nil {
		positions = dataset.Indices(r.N)
	}
	out := make(chan sampleBatch, 1)
	go func() {
		defer close(out)
		for at := 0; at < len(positions); at += readSize {
			b := r.load(ctx, positions[at:min(at+readSize, len(positions))], f)
			select {
			case out <- b:
			case <-ctx.Done():
				return
			}
			if b.err != nil {
				return
			}
		}
	}()
	return out
}

// load reads the samples at the given positions. If some cannot be read, it reads the samples one
// by one to find out which.
func (r *Request) load(ctx context.Context, positions []int, f dataset.Frame) sampleBatch {
	samples, err := r.Read(ctx, positions, f)
	if err != nil || len(samples) == len(positions) {
		return sampleBatch{positions, samples, err}
	}
	var readable sampleBatch
	for i := range positions {
		one, err := r.Read(ctx, positions[i:i+1], f)
		if err != nil {
			return sampleBatch{err: err}
		}
		if len(one) == 1 {
			readable.positions, readable.samples = append(readable.positions, positions[i]), append(readable.samples, one[0])
		}
	}
	return readable
}

// inputs returns the inputs of the model.
func (e *extraction) inputs(samples []dataset.Sample) ([]tensor.Tensor, error) {
	if e.Transform != nil && !e.Pairs {
		ops := make([]transform.Op, len(samples))
		for i, s := range samples {
			ops[i] = e.Transform(s)
		}
		return dataset.ApplyAll(samples, ops, func(n int, apply func(i int) error) error {
			for i := range n {
				if err := apply(i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	inputs := make([]tensor.Tensor, len(samples))
	for i, s := range samples {
		inputs[i] = s.Input
		if e.Pairs {
			inputs[i] = *s.Transformed
		}
	}
	return inputs, nil
}

func (e *extraction) runBatch(ctx context.Context, session *model.Session, buf *model.Buffers, positions []int, samples []dataset.Sample, to []*writer) error {
	inputs, err := e.inputs(samples)
	if err != nil {
		return err
	}
	if err := session.Run(ctx, inputs, buf); err != nil {
		return err
	}
	for k, pool := range e.pools {
		z := buf.Layer(k)
		row := make([]float32, e.Pool.Dim(e.layers[k]))
		for i, s := range samples {
			one := z.At(i)
			if one.FirstNonFinite() >= 0 {
				view := "clean"
				if e.Transform != nil || e.Pairs {
					view = "transformed"
				}
				return fmt.Errorf("layer %s: %w", e.layers[k].Name, &measure.NonFinite{View: view, Index: s.Index, Name: s.Name})
			}
			if pool != nil {
				pool(row, one.Data)
			} else {
				copy(row, one.Data)
			}
			if err := to[k].add(positions[i], row); err != nil {
				return err
			}
		}
	}
	if e.samples != nil {
		e.samples.add(positions, samples)
	}
	if e.Progress != nil {
		e.Progress(int64(len(samples)))
	}
	return nil
}
