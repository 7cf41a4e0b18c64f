package train

import (
	"slices"

	"github.com/noether-ml/noether/engine/ort"
)

type snapshot struct {
	state [][]float32 // of the parameters, running statistics and optimiser
	done  int         // number of steps, as in Trainer
}

// snapshot returns a copy of the current state, or nil if epochs are never rolled back.
func (r *fitter) snapshot() *snapshot {
	if r.RollbackFactor == 0 {
		return nil
	}
	s := &snapshot{done: r.trainer.done}
	for _, v := range r.trainer.state[0] { // the current values
		s.state = append(s.state, slices.Clone(ort.Data[float32](v)))
	}
	return s
}

// increased reports whether an epoch must be rolled back: its loss is larger than that of the last
// epoch that was not rolled back.
func (r *fitter) increased(e Epoch) bool {
	if r.RollbackFactor == 0 {
		return false
	}
	for i := len(r.epochs) - 1; i >= 0; i-- {
		if !r.epochs[i].RolledBack {
			return r.rollbackLoss(e) > r.rollbackLoss(r.epochs[i])
		}
	}
	return false
}

// rollbackLoss returns the loss that decides whether an epoch is rolled back: the validation loss,
// or the objective, which adds the mean penalty to it.
func (r *fitter) rollbackLoss(e Epoch) float64 {
	if r.RollbackByLoss {
		return e.Validation
	}
	return e.Objective
}

// rollBack restores a snapshot and reduces the learning rate. The schedule of the learning rate
// still counts the steps that were rolled back.
func (r *fitter) rollBack(s *snapshot) error {
	for i, v := range s.state {
		copy(ort.Data[float32](r.trainer.state[0][i]), v)
	}
	r.trainer.rolledBack += r.trainer.done - s.done
	r.trainer.done = s.done
	r.trainer.rateScale *= r.RollbackFactor
	return r.trainer.upload() // to the device
}
