package train

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/state"
)

const (
	stateKind    = "training"
	stateVersion = 3
)

// save saves the state of a training after an epoch: weights, optimiser and results so far, if a
// checkpoint is due.
func (r *fitter) save() error {
	if !state.Due(r.Checkpoint) {
		return nil
	}
	if err := state.Save(r.Checkpoint, stateKind, stateVersion, r.Code); err != nil {
		return fmt.Errorf("training: saving a checkpoint: %w", err)
	}
	return nil
}

// restore continues from a checkpoint of the same training, if there is one. A checkpoint of
// another training is an error.
func (r *fitter) restore() error {
	err := state.Load(r.Checkpoint, stateKind, stateVersion, r.Code)
	if err == nil && len(r.epochs) > 0 {
		err = r.trainer.upload() // to the device
	}
	if err != nil {
		return fmt.Errorf("training: %w", err)
	}
	if len(r.epochs) > 0 && r.Resumed != nil {
		return r.Resumed(r.epochs)
	}
	return nil
}

// Code writes or reads the state. Some values of an epoch exist only if the training searches for
// adversarial examples or if each position has a class.
func (r *fitter) Code(c *state.Codec) {
	n, batch, seed, identity := r.train.Len(), r.Batch, int(r.Seed), r.Identity
	if c.Values(&n, &batch, &seed); n != r.train.Len() || batch != r.Batch ||
		uint64(seed) != r.Seed {
		c.Fail(fmt.Errorf("it belongs to another training: %d samples in batches of %d with seed %d",
			n, batch, uint64(seed)))
		return
	}
	if c.Values(&identity); identity != r.Identity {
		c.Fail(errors.New("it belongs to another training, with other settings"))
		return
	}
	epochs := len(r.epochs)
	for i := range c.Len(&epochs, r.Epochs) {
		if c.Reads() {
			r.epochs = append(r.epochs, Epoch{Number: i + 1, ValidationMeanIoU: math.NaN(),
				ValidationRobust: math.NaN()})
		}
		e := &r.epochs[i]
		c.Values(&e.Train, &e.Validation, &e.TrainAccuracy, &e.ValidationAccuracy, &e.Objective,
			&e.Rate, &e.Seconds)
		if r.trainer.search != nil {
			c.Values(&e.ValidationRobust)
		}
		if r.trainer.program.spec.Loss.perPosition {
			c.Values(&e.ValidationMeanIoU)
		}
		c.Values(&e.RolledBack, &e.Best)
		c.Check(e.Best >= 1 && e.Best <= e.Number, "its epoch %d names epoch %d as the best",
			e.Number, e.Best)
	}
	t := r.trainer
	c.Values(&t.done, &t.rolledBack, &t.rateScale)
	for i, s := range t.program.stateTensors() {
		name, shape := s.name, s.shape
		if c.Values(&name, &shape); name != s.name || !slices.Equal(shape, s.shape) {
			c.Fail(fmt.Errorf("it belongs to another network: it has %q of shape %v, want %q of shape %v",
				name, shape, s.name, s.shape))
			return
		}
		c.Values(ort.Data[float32](t.state[0][i]))
	}
	if c.Reads() {
		r.best = t.Weights()
	}
	for _, s := range t.program.weights() {
		c.Values(r.best[s.name].Data)
	}
}
