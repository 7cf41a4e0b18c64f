package train

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/state"
)

// The kind of a checkpoint, and the version of its format.
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
	if err := r.Checkpoint.Save(r.write); err != nil {
		return fmt.Errorf("training: saving a checkpoint: %w", err)
	}
	return nil
}

// write writes the state to a checkpoint. Some values of an epoch exist only if the training
// searches for adversarial examples or if each position has a class.
func (r *fitter) write(to io.Writer) error {
	w := state.Stream(to, stateKind, stateVersion)
	w.Int(r.train.Len())
	w.Int(r.Batch)
	w.Int(int(r.Seed))
	w.String(r.Identity)
	w.Int(len(r.epochs))
	for _, e := range r.epochs {
		for _, v := range []float64{e.Train, e.Validation, e.TrainAccuracy, e.ValidationAccuracy, e.Objective, e.Rate, e.Seconds} {
			w.Float(v)
		}
		if r.trainer.search != nil {
			w.Float(e.ValidationRobust)
		}
		if r.trainer.program.spec.Loss.perPosition {
			w.Float(e.ValidationMeanIoU)
		}
		w.Bool(e.RolledBack)
		w.Int(e.Best)
	}
	w.Int(r.trainer.done)
	w.Int(r.trainer.rolledBack)
	w.Float(r.trainer.rateScale)
	for i, s := range r.trainer.program.stateTensors() {
		w.String(s.name)
		w.Ints(s.shape)
		w.Float32s(ort.Data[float32](r.trainer.state[0][i]))
	}
	for _, s := range r.trainer.program.weights() {
		w.Float32s(r.best[s.name].Data)
	}
	return w.Close()
}

// restore continues from a checkpoint of the same training, if there is one. A checkpoint of
// another training is an error.
func (r *fitter) restore() error {
	if r.Checkpoint == nil {
		return nil
	}
	raw, err := r.Checkpoint.Load()
	if err == nil && raw != nil {
		err = r.read(raw)
		raw.Close()
	}
	if err != nil {
		return fmt.Errorf("training: resuming from a checkpoint: %w", err)
	}
	return nil
}

// read reads the state from a checkpoint.
func (r *fitter) read(raw io.Reader) error {
	in, err := state.Open(raw, stateKind, stateVersion)
	if err != nil {
		return err
	}
	if n, batch, seed := in.Int(), in.Int(), in.Int(); n != r.train.Len() || batch != r.Batch || uint64(seed) != r.Seed {
		return fmt.Errorf("it belongs to another training: %d samples in batches of %d with seed %d", n, batch, uint64(seed))
	}
	if identity := in.String(); identity != r.Identity {
		return errors.New("it belongs to another training, with other settings")
	}
	epochs := make([]Epoch, 0)
	for i := range in.Int() {
		e := Epoch{Number: i + 1, ValidationMeanIoU: math.NaN(), ValidationRobust: math.NaN()}
		for _, v := range []*float64{&e.Train, &e.Validation, &e.TrainAccuracy, &e.ValidationAccuracy, &e.Objective, &e.Rate, &e.Seconds} {
			*v = in.Float()
		}
		if r.trainer.search != nil {
			e.ValidationRobust = in.Float()
		}
		if r.trainer.program.spec.Loss.perPosition {
			e.ValidationMeanIoU = in.Float()
		}
		e.RolledBack = in.Bool()
		e.Best = in.Int()
		if e.Best < 1 || e.Best > e.Number {
			return fmt.Errorf("its epoch %d names epoch %d as the best", e.Number, e.Best)
		}
		epochs = append(epochs, e)
		if len(epochs) > r.Epochs {
			break
		}
	}
	done, rolledBack, scale := in.Int(), in.Int(), in.Float()
	tensors := r.trainer.program.stateTensors()
	values := make([][]float32, len(tensors))
	for i, s := range tensors {
		name, shape := in.String(), in.Ints()
		if name != s.name || !slices.Equal(shape, s.shape) {
			return fmt.Errorf("it belongs to another network: it has %q of shape %v, want %q of shape %v", name, shape, s.name, s.shape)
		}
		values[i] = make([]float32, len(ort.Data[float32](r.trainer.state[0][i])))
		in.Float32sInto(values[i])
	}
	best := r.trainer.Weights()
	for _, s := range r.trainer.program.weights() {
		in.Float32sInto(best[s.name].Data)
	}
	if err := in.Close(); err != nil {
		return err
	}
	for i, v := range values {
		copy(ort.Data[float32](r.trainer.state[0][i]), v)
	}
	if err := r.trainer.upload(); err != nil { // to the device
		return err
	}
	r.epochs, r.best = epochs, best
	r.trainer.done, r.trainer.rolledBack, r.trainer.rateScale = done, rolledBack, scale
	if r.Resumed != nil {
		return r.Resumed(epochs)
	}
	return nil
}
