package run

import (
	"cmp"
	"context"
	"fmt"

	"github.com/noether-ml/noether/internal/model"
	"github.com/noether-ml/noether/internal/pooling"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A reader runs one model of a pass and holds the activations of the batch that is measured.
type reader struct {
	model       *plan.Model
	data        *plan.Data
	session     *model.Session
	reduced     *model.Session // for transformed batches, if there are reductions; else nil
	reductions  plan.Reductions
	layerIndex  map[string]int           // index of each layer in the sessions
	prediction  bool                     // the class scores are read too
	clean       *activations             // of the clean inputs
	transformed *activations             // of the transformed inputs
	scratch     map[string]tensor.Tensor // transformed activations, by layer (see transformActivation)
	// The activations of the batches in progress; clean and transformed are elements of these
	// lists. Each list has one element, or two if the device computes a batch while another one is
	// measured.
	cleanSlots, transformedSlots []*activations
}

// activations are the outputs of a model for a batch.
type activations struct {
	*model.Buffers
	logProbs tensor.Tensor // log-probabilities of the classes
}

// newReader opens a session that reads layers of a model and, if prediction is set, its class
// scores. With reductions (values that the engine computes from other layers) it opens one session
// for clean and one for transformed batches. Layers in pools are pooled: see model.CanPool. The
// reader has buffers for the given number (slots) of clean batches, and for as many transformed
// ones. batch is the largest number of samples in a batch. Errors are of type *modelError.
func newReader(m *plan.Model, d *plan.Data, layers []tensor.Layer, reductions plan.Reductions, pools map[string]pooling.Kind, prediction bool, batch, slots int) (*reader, error) {
	r := &reader{model: m, data: d, prediction: prediction, reductions: reductions, layerIndex: map[string]int{}, scratch: map[string]tensor.Tensor{}}
	for i, l := range layers {
		r.layerIndex[l.Name] = i
	}
	var err error
	if len(reductions.List) > 0 {
		r.session, r.reduced, err = m.Net.NewPairSessions(layers, reductions.List, prediction, pools)
	} else {
		r.session, err = m.Net.NewBatchSession(layers, prediction, batch, pools)
	}
	if err != nil {
		return nil, &modelError{m, r.wrap(err)}
	}
	transformed := cmp.Or(r.reduced, r.session)
	for range slots {
		clean, err := r.session.NewBuffers(batch)
		if err == nil {
			r.cleanSlots = append(r.cleanSlots, &activations{Buffers: clean})
			var buffers *model.Buffers
			buffers, err = transformed.NewBuffers(batch)
			r.transformedSlots = append(r.transformedSlots, &activations{Buffers: buffers})
		}
		if err != nil {
			r.close()
			return nil, &modelError{m, r.wrap(err)}
		}
	}
	r.clean, r.transformed = r.cleanSlots[0], r.transformedSlots[0]
	return r, nil
}

// close closes the sessions.
func (r *reader) close() error {
	var err error
	if r.reduced != nil {
		err = r.reduced.Close()
	}
	return cmp.Or(r.session.Close(), err)
}

func (r *reader) wrap(err error) error { return fmt.Errorf("model %s: %w", r.model.Entry.Name, err) }

func (r *reader) buffers(transformed bool) *activations {
	if transformed {
		return r.transformed
	}
	return r.clean
}

// run runs the model on a batch of clean or transformed images, to be measured next.
func (r *reader) run(ctx context.Context, images []tensor.Tensor, transformed bool) error {
	return r.runInto(ctx, images, r.buffers(transformed))
}

// runInto runs the model on a batch of images and writes the outputs to b.
func (r *reader) runInto(ctx context.Context, images []tensor.Tensor, b *activations) error {
	if err := r.session.Run(ctx, images, b.Buffers); err != nil {
		return err
	}
	return r.predict(b)
}

// runReduced is runInto for transformed images, with the reductions. clean has the outputs for the
// same images untransformed. partners has an index of a clean image for each of them, see
// measure.Layout.Partners.
func (r *reader) runReduced(ctx context.Context, images []tensor.Tensor, partners []int, clean, b *activations) error {
	if err := r.reduced.RunTransformed(ctx, images, partners, clean.Buffers, b.Buffers); err != nil {
		return err
	}
	return r.predict(b)
}

// predict computes the log-probabilities of a batch that has run.
func (r *reader) predict(b *activations) error {
	if !r.prediction {
		return nil
	}
	z, err := b.LogProbs(r.data.Outputs)
	if err != nil {
		return r.wrap(err)
	}
	b.logProbs = r.data.GroupLogs(z)
	return nil
}

// tensor returns the activations or log-probabilities that a task reads under a view, for the b
// samples of the last batch: b x the shape of the layer, or b x classes.
func (r *reader) tensor(reading plan.Reading, v plan.View) tensor.Tensor {
	switch {
	case reading.IsPrediction():
		return r.buffers(reading.Transformed).logProbs
	case reading.Transformed && v.On == "activations": // the view transforms these instead of the input
		return r.scratch[reading.Layer.Name]
	}
	return r.buffers(reading.Transformed).Layer(r.layerIndex[reading.Layer.Name])
}

// transformActivation transforms the clean feature maps of a layer, those of sample i by ops[i],
// and keeps the result for tensor.
func (r *reader) transformActivation(layer tensor.Layer, ops []transform.Op) {
	z := r.clean.Layer(r.layerIndex[layer.Name])
	out, ok := r.scratch[layer.Name]
	if !ok || cap(out.Data) < len(z.Data) {
		out = tensor.New(z.Shape...)
	}
	out = tensor.Tensor{Shape: z.Shape, Data: out.Data[:len(z.Data)]}
	r.scratch[layer.Name] = out
	for i, op := range ops {
		applyToMaps(op, out.At(i), z.At(i), layer.Axes == "NHWC")
	}
}

// applyToMaps transforms one sample's feature maps. Channels-last maps are converted to c x h x w
// and back.
func applyToMaps(op transform.Op, dst, src tensor.Tensor, channelsLast bool) {
	if !channelsLast {
		op.Apply(dst, src)
		return
	}
	c, h, w := src.Shape[2], src.Shape[0], src.Shape[1]
	maps, transformed := tensor.New(c, h, w), tensor.New(c, h, w)
	toChannelsFirst(maps, src)
	op.Apply(transformed, maps)
	toChannelsLast(dst, transformed)
}

func toChannelsFirst(dst, src tensor.Tensor) { // dst: c x h x w, src: h x w x c
	c := src.Shape[2]
	plane := len(src.Data) / max(c, 1)
	for p := range plane {
		for k := range c {
			dst.Data[k*plane+p] = src.Data[p*c+k]
		}
	}
}

func toChannelsLast(dst, src tensor.Tensor) { // dst: h x w x c, src: c x h x w
	c := src.Shape[0]
	plane := len(src.Data) / max(c, 1)
	for p := range plane {
		for k := range c {
			dst.Data[p*c+k] = src.Data[k*plane+p]
		}
	}
}
