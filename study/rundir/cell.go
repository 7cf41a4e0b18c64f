package rundir

import (
	"slices"

	"github.com/noether-ml/noether/study/internal/telemetry"
	"github.com/noether-ml/noether/study/plan"
)

// CompleteCell writes the record of a cell (a measure for one model, data set, transformation value
// and trial) and removes its states, if all its layers have scores.
func (r *Writer) CompleteCell(c *plan.Cell) error {
	if slices.ContainsFunc(c.Tasks, func(t *plan.Task) bool { return t.Scored == nil }) {
		return nil
	}
	defer r.Stats.During(telemetry.Saving)()
	if err := r.Folder.writeCell(c); err != nil {
		return SaveError(err)
	}
	if err := r.removeStates(c); err != nil {
		return SaveError(err)
	}
	r.cellDone(c)
	for _, t := range c.Tasks {
		t.Scored = nil // the record in the folder holds them now
	}
	return nil
}

// cellDone marks a cell as finished.
func (r *Writer) cellDone(c *plan.Cell) {
	c.Done = true
	r.Stats.Finished.Add(1)
	r.Folder.RemoveFailures(c.Key)
	r.Log.Info("cell finished", "what", c.String())
}
