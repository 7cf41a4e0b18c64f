package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/study/internal/guard"
	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A batch holds samples and the inputs of one forward pass of each model on them: clean, or under
// one view. Unreadable samples are left out. The order is the random one in which a pass reads the
// samples of the data set once (plan.Pass).
type batch struct {
	view      int                // plan.CleanView, or index of the view
	positions []int              // of the samples in the order, ascending
	indices   []int              // of the samples in the data set
	labels    []int              // classes, or dataset.NoLabel
	names     []string           // of the samples
	truth     [][]*dataset.Truth // for each model of the pass: labelled boxes or masks of the samples; nil if the data have none
	inputs    [][]tensor.Tensor  // for each model of the pass: one input per sample; nil if the model need not run
	ops       []transform.Op     // the transformation of each sample; nil for clean inputs, and for data whose files hold both x and T(x)
	end       int                // the position after the last sample of the batch, unreadable ones included
}

// nameSample adds the name of the sample to a measure.NonFinite or measure.NonFiniteIn error, and
// returns the error.
func (b *batch) nameSample(err error) error {
	name := func(index int) string {
		if i := slices.Index(b.indices, index); i >= 0 && i < len(b.names) {
			return b.names[i]
		}
		return ""
	}
	var bad *measure.NonFinite
	var badIn *measure.NonFiniteIn
	switch {
	case errors.As(err, &bad):
		bad.Name = name(bad.Index)
	case errors.As(err, &badIn):
		badIn.Name = name(badIn.Index)
	}
	return err
}

// A stream delivers batches, which other goroutines prepare while the inference engine runs models.
type stream struct {
	batches chan *batch // closed after the last batch, or after an error
	failure error       // why the stream ended early, or nil
}

// err returns why the stream ended early. It is valid once batches is closed.
func (s *stream) err() error { return s.failure }

// prepare starts the stream of the pass that the feeder runs. The stream holds at most a few
// batches at a time.
func (f *feeder) prepare(ctx context.Context) *stream {
	s := &stream{batches: make(chan *batch, 1)}
	go func() {
		defer close(s.batches)
		s.failure = guard.Run(func() error { return f.produce(ctx, s.batches) })
	}()
	return s
}

// produce sends the clean batches to out, each followed by the same samples under each view.
func (f *feeder) produce(ctx context.Context, out chan<- *batch) error {
	start := f.Start()
	w := f.newSampleReader(ctx, f.Data().Order.Range(start, f.Hi))
	defer w.stop()
	for at := start; at < f.Hi; at += f.Batch {
		end := min(at+f.Batch, f.Hi)
		start := time.Now()
		samples, clean, err := w.collect(at, end)
		f.stats.Add(telemetry.Decoding, start)
		f.stats.Decoded.Add(int64(end - at))
		if err != nil {
			return err
		}
		if err := send(ctx, out, clean); err != nil {
			return err
		}
		for i := range f.Views {
			start := time.Now()
			b, err := f.transformBatch(samples, clean, i)
			f.stats.Add(telemetry.Transforming, start)
			if err != nil {
				return err
			}
			if err := send(ctx, out, b); err != nil {
				return err
			}
		}
	}
	return nil
}

func send(ctx context.Context, out chan<- *batch, b *batch) error {
	select {
	case out <- b:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A sampleReader reads the samples of a pass in order, in every frame (size and crop of the input)
// that its models need.
type sampleReader struct {
	*feeder
	ctx    context.Context // of the pass
	frames []dataset.Frame
	next   []func() (dataset.Sample, error, bool) // for each frame
	stops  []func()                               // for each frame: ends the reading
}

func (f *feeder) newSampleReader(ctx context.Context, indices []int) *sampleReader {
	w := &sampleReader{feeder: f, ctx: ctx, frames: f.frames()}
	for _, frame := range w.frames {
		next, stop := iter.Pull2(dataset.Read(ctx, f.Data().Source, indices, frame, dataset.ReadOptions{}))
		w.next, w.stops = append(w.next, next), append(w.stops, stop)
	}
	return w
}

// frames returns the distinct frames of the models.
func (f *feeder) frames() []dataset.Frame {
	var frames []dataset.Frame
	for _, m := range f.Models {
		if frame := m.Net.Frame(); !slices.Contains(frames, frame) {
			frames = append(frames, frame)
		}
	}
	return frames
}

func (w *sampleReader) stop() {
	for _, stop := range w.stops {
		stop()
	}
}

// collect reads the samples at positions [from, end) of the order. It returns the samples of each
// frame, and the clean batch.
func (w *sampleReader) collect(from, end int) ([][]dataset.Sample, *batch, error) {
	clean := &batch{view: plan.CleanView, end: end}
	samples := make([][]dataset.Sample, len(w.frames))
	for position := from; position < end; position++ {
		sample, err := w.sample()
		if bad := (*dataset.BadSample)(nil); errors.As(err, &bad) {
			w.stats.Unreadable.Add(1)
			if err := w.Data().NoteUnreadable(w.ctx, bad, w.frames[0]); err != nil {
				return nil, nil, err
			}
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		for i, s := range sample {
			samples[i] = append(samples[i], s)
		}
		clean.positions = append(clean.positions, position)
		clean.indices = append(clean.indices, sample[0].Index)
		clean.labels = append(clean.labels, sample[0].Label)
		clean.names = append(clean.names, sample[0].Name)
	}
	clean.truth = w.truths(samples)
	clean.inputs = w.inputs(plan.CleanView, len(clean.positions), func(frame int) []tensor.Tensor {
		var images []tensor.Tensor
		for _, s := range samples[frame] {
			images = append(images, s.Input)
		}
		return images
	})
	return samples, clean, nil
}

// truths returns for each model the labelled boxes or masks of the samples in the model's frame.
// The argument holds the samples of each frame.
func (w *sampleReader) truths(samples [][]dataset.Sample) [][]*dataset.Truth {
	if _, ok := dataset.TruthClasses(w.Data().Source); !ok {
		return nil
	}
	out := make([][]*dataset.Truth, len(w.Models))
	for i, m := range w.Models {
		for _, s := range samples[slices.Index(w.frames, m.Net.Frame())] {
			out[i] = append(out[i], s.Truth)
		}
	}
	return out
}

// sample reads the next sample in every frame. If it cannot be read in one of them, the error is a
// *dataset.BadSample.
func (w *sampleReader) sample() ([]dataset.Sample, error) {
	var out []dataset.Sample
	var bad error
	for _, next := range w.next {
		s, err, ok := next()
		if !ok {
			if err := context.Cause(w.ctx); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("data %s: fewer samples than expected: %w", w.Data().Entry.Name, io.ErrUnexpectedEOF)
		}
		var unreadable *dataset.BadSample
		if err != nil && !errors.As(err, &unreadable) {
			return nil, fmt.Errorf("data %s: %w", w.Data().Entry.Name, err)
		}
		if err != nil && bad == nil {
			bad = err
		}
		out = append(out, s)
	}
	return out, bad
}

// inputs returns the n inputs of each model that runs on a view, zero tensors for one that takes
// none. Models with equal frames share them.
func (f *feeder) inputs(view, n int, images func(frame int) []tensor.Tensor) [][]tensor.Tensor {
	frames := f.frames()
	byFrame := make([][]tensor.Tensor, len(frames))
	out := make([][]tensor.Tensor, len(f.Models))
	for i, m := range f.Models {
		if !f.Runs(m, view) {
			continue
		}
		if !m.Net.TakesInput() {
			out[i] = make([]tensor.Tensor, n)
			continue
		}
		frame := slices.Index(frames, m.Net.Frame())
		if byFrame[frame] == nil {
			byFrame[frame] = images(frame)
		}
		out[i] = byFrame[frame]
	}
	return out
}

// transformBatch prepares a batch under a view. The argument samples holds the clean samples of
// each frame.
func (f *feeder) transformBatch(samples [][]dataset.Sample, clean *batch, view int) (*batch, error) {
	b := &batch{view: view, positions: clean.positions, indices: clean.indices, labels: clean.labels, names: clean.names, truth: clean.truth, end: clean.end}
	v := f.Views[view]
	switch {
	case v.Name == "": // clean inputs, which the clean batch holds
		return b, nil
	case v.Transform != nil:
		for _, s := range samples[0] {
			b.ops = append(b.ops, f.Draw(v, s.Index))
		}
	}
	if !v.TransformsInput() {
		return b, nil
	}
	var err error
	b.inputs = f.inputs(view, len(b.positions), func(frame int) []tensor.Tensor {
		images, failed := f.transformSamples(samples[frame], b.ops, v)
		if err == nil && failed != nil {
			err = &viewError{v, failed}
		}
		return images
	})
	return b, err
}

// transformSamples transforms samples in parallel, each by its Op. Samples of data that are pairs
// already hold their transformed images.
func (f *feeder) transformSamples(samples []dataset.Sample, ops []transform.Op, v plan.View) ([]tensor.Tensor, error) {
	if v.Transform == nil {
		out := make([]tensor.Tensor, len(samples))
		for i, s := range samples {
			if s.Transformed == nil {
				return nil, fmt.Errorf("data %s: sample %s has no transformed partner: remove it from the data, or add its pair", f.Data().Entry.Name, s.Name)
			}
			out[i] = *s.Transformed
		}
		return out, nil
	}
	for _, op := range ops {
		// Some transformations reject drawn parameters and draw again.
		if rejected := transform.RejectedDraws(op); rejected > 0 || v.Redraws() {
			f.Data().Redrawn.Add(v.Name, rejected)
		}
	}
	return dataset.ApplyAll(samples, ops, func(n int, apply func(i int) error) error {
		var group errgroup.Group
		group.SetLimit(f.cores)
		for i := range n {
			group.Go(func() error { return guard.Run(func() error { return apply(i) }) })
		}
		return group.Wait()
	})
}
