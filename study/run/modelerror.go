package run

import (
	"errors"
	"slices"

	"github.com/noether-ml/noether/study/plan"
)

// failPass gives up what is left of a pass, after what it has gathered has been saved for another
// try: all that reads the model that failed, or everything if it was no model.
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
		if err := r.giveUp(t.Cell, "", inputs, cause); err != nil {
			return err
		}
	}
	return nil
}

// A modelError is that of one model of a pass: it could not be prepared, or the engine could not
// run it.
type modelError struct {
	model *plan.Model
	error
}

func (e *modelError) Unwrap() error { return e.error }
