package run

import (
	"context"
	"slices"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/engine"
	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A Source is a model on a data set, whose activations Extract reads.
type Source struct {
	Model, Data string
	Samples     int            // of the data; some may turn out to be unreadable
	Layers      []tensor.Layer // that the study selects
	Views       []string       // paths of the transformations (plan.View.Path) without the clean one
}

// A Sink takes the activations of a model on a data set, in the order of the samples in the data.
type Sink interface {
	// Samples announces the samples of the next calls of Write.
	Samples(samples []dataset.Sample) error
	// Write takes their activations, one tensor for each layer of the source, which are valid during
	// the call. They may be pooled. view is "" for clean samples.
	Write(view string, z []tensor.Tensor) error
	// Close completes what was written. It is called after the last sample.
	Close() error
	// Abort closes files and completes nothing. It is called after an error.
	Abort()
}

// extractionMemory bounds the activations of a batch in bytes.
const extractionMemory = 256 << 20

// Extract gives the activations of a plan's models on its data, clean and transformed as a run of
// the study transforms them, to sinks that open returns. Its cells do not matter. Samples that
// cannot be read are left out. Transformations of activations are skipped with a warning. With pool,
// engines that can pool layers before they are copied do.
func Extract(ctx context.Context, p *plan.Plan, o plan.Options, pool pooling.Kind, open func(Source) (Sink, error)) error {
	var extractions []*extraction
	var progress plan.Progress
	for _, d := range p.Data {
		var views []plan.View
		for _, v := range p.Views(d) {
			switch {
			case v.Name == "":
			case !v.TransformsInput():
				o.Warnf("%s transforms activations: it is left out", v.Path())
			default:
				views = append(views, v)
			}
		}
		for _, m := range p.Models {
			if len(m.Net.Layers()) == 0 || p.Only != nil && !slices.Contains(p.Only, m.Entry.Name) {
				continue
			}
			pools := map[string]pooling.Kind{}
			for _, l := range m.Net.Layers() {
				if m.Net.CanPool(l, pool) {
					pools[l.Name] = pool
				}
			}
			extractions = append(extractions, &extraction{modelData: modelData{m, d}, plan: p, options: &o, progress: &progress, layers: m.Net.Layers(), pools: pools, views: views})
			progress.Total += int64(d.Order.Len() * (1 + len(views)))
		}
	}
	progress.Passes = len(extractions)
	for i, e := range extractions {
		progress.Pass, progress.Model, progress.Data = i+1, e.model.Entry.Name, e.data.Entry.Name
		progress.Samples, progress.AllSamples = 0, e.data.Order.Len()
		if err := e.run(ctx, open); err != nil {
			return err
		}
	}
	return nil
}

// An extraction reads the activations of a model on a data set.
type extraction struct {
	modelData
	plan     *plan.Plan
	options  *plan.Options
	layers   []tensor.Layer
	pools    map[string]pooling.Kind // of layers that the engine pools
	views    []plan.View
	progress *plan.Progress
}

func (e *extraction) run(ctx context.Context, open func(Source) (Sink, error)) error {
	source := Source{e.model.Entry.Name, e.data.Entry.Name, e.data.Order.Len(), e.layers, nil}
	for _, v := range e.views {
		source.Views = append(source.Views, v.Path())
	}
	sink, err := open(source)
	if err != nil {
		return err
	}
	err = e.feed(ctx, sink)
	if err == nil {
		err = checkModels(ctx, []*plan.Model{e.model})
	}
	if err != nil {
		sink.Abort()
		return err
	}
	return sink.Close()
}

func (e *extraction) feed(ctx context.Context, sink Sink) error {
	pass := plan.TimingPass(e.model, e.data, e.batch())
	pass.Seed = e.plan.Study.Seed
	r, err := newReader(e.model, e.data, e.layers, plan.Reductions{}, e.pools, false, pass.Batch, 1)
	if err != nil {
		return err
	}
	defer r.close()
	f := &feeder{Pass: pass, cores: e.options.Workers(), stats: e.plan.Stats}
	order := slices.Sorted(slices.Values(e.data.Order.First(e.data.Order.Len())))
	w := f.newSampleReader(ctx, order)
	defer w.stop()
	for at := 0; at < len(order); at += pass.Batch {
		end := min(at+pass.Batch, len(order))
		samples, batch, err := w.collect(at, end)
		if err != nil {
			return err
		}
		if len(batch.indices) > 0 {
			if err := e.batchOf(ctx, f, r, samples[0], batch, sink); err != nil {
				return err
			}
		}
		e.progress.Samples = end
		e.progress.Done += int64((end - at) * (1 + len(e.views)))
		if e.options.Progress != nil {
			e.options.Progress(*e.progress)
		}
	}
	return nil
}

// batch returns how many samples are run at once.
func (e *extraction) batch() int {
	bytes := 1
	for _, l := range e.layers {
		bytes += 8 * tensor.Size(l.Shape) // of the clean and the transformed activation
	}
	return max(1, min(32, extractionMemory/bytes))
}

// batchOf runs the model on a batch of samples, clean and under each view.
func (e *extraction) batchOf(ctx context.Context, f *feeder, r *reader, samples []dataset.Sample, b *batch, sink Sink) error {
	if err := sink.Samples(samples); err != nil {
		return err
	}
	inputs := make([]tensor.Tensor, len(samples))
	if e.model.Net.TakesInput() {
		for i, s := range samples {
			inputs[i] = s.Input
		}
	}
	if err := e.write(ctx, r, "", inputs, b, sink); err != nil {
		return err
	}
	for _, v := range e.views {
		transformed := inputs
		if e.model.Net.TakesInput() {
			var ops []transform.Op
			for _, s := range samples {
				if v.Transform != nil { // else the data are pairs
					ops = append(ops, f.Draw(v, s.Index))
				}
			}
			var err error
			if transformed, err = f.transformSamples(samples, ops, v); err != nil {
				return &viewError{v, err}
			}
		}
		if err := e.write(ctx, r, v.Path(), transformed, b, sink); err != nil {
			return err
		}
	}
	return nil
}

func (e *extraction) write(ctx context.Context, r *reader, view string, inputs []tensor.Tensor, b *batch, sink Sink) error {
	r.clean.Identify(engine.Samples{Index: b.indices, View: view})
	if err := r.run(ctx, inputs, false); err != nil {
		return err
	}
	z := make([]tensor.Tensor, len(e.layers))
	for i := range e.layers {
		z[i] = r.clean.Layer(i)
	}
	return sink.Write(view, z)
}
