package recipe

import (
	"context"
	"fmt"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/train"
	"github.com/noether-ml/noether/internal/train/autoencoder"
	"github.com/noether-ml/noether/tensor"
)

// trainAutoencoders trains a stack of autoencoders on images, n x c x side x side: each layer on
// the activations of the one before. l holds the settings of the training file and the options of
// the run; keys are the settings of a layer in that file.
func (l *layerTraining) trainAutoencoders(ctx context.Context, x, validation tensor.Tensor) (*layerResult, error) {
	c, side := l.shape[0], l.shape[1]
	if l.shape[2] != side {
		return nil, l.node.Get("data").Errorf("images are %d x %d: autoencoders take square images", side, l.shape[2])
	}
	flatten := func(t tensor.Tensor) tensor.Tensor {
		return tensor.Tensor{Shape: []int{t.Shape[0], t.Len() / t.Shape[0]}, Data: t.Data}
	}
	x, validation = flatten(x), flatten(validation)
	out := &layerResult{}
	var stack []*autoencoder.Layer
	keys := l.Network.Autoencoder.Layers
	for i, k := range keys {
		trained, layer, err := l.trainAutoencoder(ctx, i, k, x, validation)
		if err != nil {
			return nil, fmt.Errorf("layer %d: %w", i+1, err)
		}
		stack, out.layers = append(stack, trained), append(out.layers, layer)
		out.images = append(out.images, autoencoder.Images(side, c, stack...))
		if i == len(keys)-1 {
			break
		}
		if x, err = autoencoder.Encode(ctx, l.Runtime, trained, x); err != nil {
			return nil, err
		}
		if validation, err = autoencoder.Encode(ctx, l.Runtime, trained, validation); err != nil {
			return nil, err
		}
	}
	var err error
	out.model, err = autoencoder.Model(side, c, autoencoder.Branch{Layers: stack})
	return out, err
}

// trainAutoencoder trains layer i, from 0, on n samples, each a vector: x is n x values.
func (l *layerTraining) trainAutoencoder(ctx context.Context, i int, k autoencoderLayerKeys, x, validation tensor.Tensor) (*autoencoder.Layer, Layer, error) {
	// Losses of train.Epoch are means over the values of a sample; the log has sums, |x - y|^2 for
	// a sample x and its reconstruction y. An epoch is rolled back, that is, the state before it is
	// restored, if it increased the objective on the validation samples or, with byLoss, their loss
	// without penalties; the learning rate is then reduced.
	layers, width := len(l.Network.Autoencoder.Layers), float64(x.Shape[1])
	best := l.node.Get("keep") != nil && l.Keep == "best" // without the key, the last epoch is kept
	rollbackFactor, byLoss := l.Rollback.options()
	afterEpoch := func(e train.Epoch) error {
		row := logRow{epoch: e.Number, train: width * e.Train, validation: width * e.Validation, objective: width * e.Objective, rolledBack: e.RolledBack, rate: e.Rate, time: e.Seconds}
		return l.recordEpoch(i, layers, row)
	}
	trained, err := autoencoder.Train(ctx, l.Runtime, x, validation, autoencoder.Settings{
		Units: k.Units, Decay: k.Decay, Target: k.Target, Weight: k.Weight, Clip: l.Clip,
		Optimiser: l.Optimiser.optimiser(), Schedule: l.Schedule.schedule((x.Shape[0] +
			l.Batch - 1) / l.Batch),
		Engine: ort.Options{Threads: l.Threads, Device: l.Device}, FitOptions: train.FitOptions{
			Epochs: l.Epochs, Batch: l.Batch, Seed: l.Seed + uint64(i), KeepLast: !best,
			Patience:       l.Patience,
			RollbackFactor: rollbackFactor, RollbackByLoss: byLoss, Checkpoint: l.checkpoint(i),
			Identity: fmt.Sprint(l.identity, " layer ", i+1), AfterEpoch: afterEpoch,
			Resumed: func(epochs []train.Epoch) error {
				for _, e := range epochs {
					if err := afterEpoch(e); err != nil {
						return err
					}
				}
				return nil
			}},
	})
	if err != nil {
		return nil, Layer{}, err
	}
	return trained, autoencoderResult(k.Units, trained.Curve, best), nil
}

// autoencoderResult returns the result of a layer: of its best epoch, or of the last that was not
// rolled back. curve has the losses of each epoch. Start and End are the reconstruction error after
// the first epoch and of the weights that are kept.
func autoencoderResult(units int, curve []autoencoder.Point, best bool) Layer {
	out := Layer{Units: units, Epochs: len(curve), Start: curve[0].Validation, End: curve[0].Validation}
	for _, p := range curve {
		switch {
		case p.RolledBack:
		case best:
			out.End = min(out.End, p.Validation)
		default:
			out.End = p.Validation
		}
	}
	return out
}
