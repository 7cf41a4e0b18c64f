package recipe

import (
	"context"
	"fmt"
	"time"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/train/cdbn"
	"github.com/noether-ml/noether/tensor"
)

// checkCDBN returns an error for keys of a training file that have no effect on contrastive
// divergence. The key take-back undoes epochs that increase the loss.
func (f *File) checkCDBN() error {
	if f.Optimiser.SGD == nil || f.Optimiser.SGD.Nesterov || f.Optimiser.SGD.WeightDecay != 0 {
		return f.node.Get("optimiser").Errorf("contrastive divergence uses sgd with a rate and a momentum: set the decay in each layer")
	}
	for _, key := range []string{"schedule", "clip", "patience", "take-back", "keep", "validation"} {
		if n := f.node.Get(key); n != nil {
			return n.Errorf("%s has no effect on contrastive divergence: leave it out", key)
		}
	}
	return nil
}

// trainCDBN trains a convolutional deep belief network, layer by layer, on images, n x c x h x w.
// It also returns the filters of each layer as images.
func (l *layerTraining) trainCDBN(ctx context.Context, x tensor.Tensor) (*layerResult, error) {
	out := &layerResult{}
	var stack []*cdbn.Layer
	keys := l.Network.CDBN.Layers
	for i, k := range keys {
		trained, layer, err := l.trainCDBNLayer(ctx, i, k, x)
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", i+1, err)
		}
		stack, out.layers = append(stack, trained), append(out.layers, layer)
		out.images = append(out.images, cdbn.Images(stack...))
		if i == len(keys)-1 {
			break
		}
		if x, err = cdbn.Encode(ctx, l.Runtime, trained, x); err != nil {
			return nil, err
		}
	}
	var err error
	out.model, err = cdbn.Model(stack...)
	return out, err
}

// trainCDBNLayer trains the layer with index i (from 0) on x: the images, or the probabilities of
// the units of the layer below for each of them. k holds the settings of the layer; its Scale is a
// factor of the learning rate. Steps draw their batches at random, and an epoch has as many steps
// as it takes to draw each image once on average.
func (l *layerTraining) trainCDBNLayer(ctx context.Context, i int, k cdbnLayerKeys, x tensor.Tensor) (*cdbn.Layer, Layer, error) {
	batch := min(l.Batch, x.Shape[0])
	perEpoch := (x.Shape[0] + batch - 1) / batch
	var row logRow
	var rows []logRow
	started := time.Now()
	trained, err := cdbn.Train(ctx, l.Runtime, x, cdbn.Settings{
		Units: k.Units, Filter: l.Network.CDBN.Filter, Block: l.Network.CDBN.Block, Binary: i > 0, Target: k.Target, Weight: k.Weight, Decay: k.Decay,
		Rate: k.Scale * l.Optimiser.SGD.Rate, Momentum: l.Optimiser.SGD.Momentum, Steps: l.Epochs * perEpoch, Batch: batch, Seed: l.Seed + uint64(i),
		Engine: ort.Options{Threads: l.Threads, Device: l.Device},
		AfterStep: func(p cdbn.Point) error {
			row.train += p.Error / float64(perEpoch)
			row.activity += p.Activity / float64(perEpoch)
			if p.Step%perEpoch != 0 {
				return nil
			}
			row.epoch, row.rate, row.time = p.Step/perEpoch, k.Scale*l.Optimiser.SGD.Rate, time.Since(started).Seconds()
			done := row
			rows, row, started = append(rows, row), logRow{}, time.Now()
			return l.recordEpoch(i, len(l.Network.CDBN.Layers), done)
		},
	})
	if err != nil {
		return nil, Layer{}, err
	}
	last := rows[len(rows)-1]
	return trained, Layer{Units: k.Units, Epochs: len(rows), Start: rows[0].train, End: last.train, Activation: &last.activity}, nil
}
