package run

import (
	"context"
	"errors"
	"slices"

	"github.com/noether-ml/noether/internal/study/plan"
)

// failPass records the failure of a pass for its unfinished cells: those that read the failed model
// or view, or all if the cause is neither. The caller has saved the states of the pass. inputs
// are the names of the samples that were being read, for the records.
func (r *runner) failPass(p *plan.Pass, inputs []string, cause error) error {
	var broken *modelError
	errors.As(cause, &broken)
	var view *viewError
	errors.As(cause, &view)
	for _, t := range p.AllTasks() {
		if t.Cell.Done || t.Cell.Failed {
			continue
		}
		if broken != nil && !slices.ContainsFunc(t.Readings(), func(r plan.Reading) bool { return r.Model == broken.model }) {
			continue
		}
		if view != nil && !view.of(t.Cell) {
			continue
		}
		if err := r.failAndFree(t.Cell, noLayer, inputs, cause); err != nil {
			return err
		}
	}
	return nil
}

// checkModels returns the error of the first model that has changed since it was opened.
func checkModels(ctx context.Context, models []*plan.Model) error {
	for _, m := range models {
		if err := m.Net.Check(ctx); err != nil {
			return &modelError{m, err}
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

// A viewError is the failure of one view of a pass: samples could not be transformed.
type viewError struct {
	view plan.View
	error
}

func (e *viewError) Unwrap() error { return e.error }

// of reports whether the cell is one of the view.
func (e *viewError) of(c *plan.Cell) bool {
	return c.View.Name == e.view.Name && c.View.Parameter == e.view.Parameter && c.View.Trial == e.view.Trial
}
