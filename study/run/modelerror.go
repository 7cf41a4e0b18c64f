package run

import (
	"errors"
	"slices"

	"github.com/noether-ml/noether/study/plan"
)

// failPass fails the unfinished cells of a pass after its states have been saved: those that read
// the failed model, or all cells if the cause is not a model.
func (r *runner) failPass(p *plan.Pass, inputs []string, cause error) error {
	var broken *modelError
	errors.As(cause, &broken)
	for _, t := range p.AllTasks() {
		if t.Cell.Done || t.Cell.Failed {
			continue
		}
		if broken != nil && !slices.ContainsFunc(t.Readings(), func(r plan.Reading) bool { return r.Model == broken.model }) {
			continue
		}
		if err := r.failAndFree(t.Cell, "", inputs, cause); err != nil {
			return err
		}
	}
	return nil
}

// A modelError is the failure of one model of a pass: its session could not be opened or run.
type modelError struct {
	model *plan.Model
	error
}

func (e *modelError) Unwrap() error { return e.error }
