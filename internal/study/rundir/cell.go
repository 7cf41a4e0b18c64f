package rundir

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/plan"
)

// CompleteCell writes the record, the file of scores, of a cell (a measure for one model, data set,
// transformation value and trial) and removes its states, the saved progress, if all its layers
// have scores.
func (r *Writer) CompleteCell(c *plan.Cell) error {
	if !isScored(c) {
		return nil
	}
	defer r.Stats.During(telemetry.Saving)()
	if err := r.writeCell(c); err != nil {
		return err
	}
	return r.finishCells(c)
}

// isScored reports whether all layers of a cell have scores.
func isScored(c *plan.Cell) bool {
	return !slices.ContainsFunc(c.Tasks, func(t *plan.Task) bool { return t.Scored == nil })
}

// writeCell writes the files of a cell whose layers all have scores. The cell is not finished until
// finishCells is called.
func (r *Writer) writeCell(c *plan.Cell) error {
	record, err := r.Folder.writeCell(c, r.peakMemory())
	if err != nil {
		return SaveError(err)
	}
	if r.sampleTable != nil {
		r.sampleTable.keep(c, record.samples)
	}
	record.samples = nil
	r.keepRecord(c, record)
	for _, t := range c.Tasks {
		t.Scored = nil // the record in the folder holds them now
	}
	return nil
}

// finishCells finishes cells whose files were written. It syncs their folder before it removes the
// states, so that a loss of power cannot take both the files and the states.
func (r *Writer) finishCells(cells ...*plan.Cell) error {
	if len(cells) == 0 {
		return nil
	}
	filesys.SyncDir(filepath.Dir(r.Folder.cell(cells[0])))
	for _, c := range cells {
		if err := r.removeStates(c); err != nil {
			return SaveError(err)
		}
		r.cellDone(c)
	}
	return nil
}

// cellDone marks a cell as finished, and removes the files of its failures in earlier runs.
func (r *Writer) cellDone(c *plan.Cell) {
	c.Done = true
	r.Stats.Finished.Add(1)
	if r.failedBefore[c.Key] != nil {
		r.Folder.RemoveFailures(c.Key)
	}
	r.Log.Info("cell finished", "what", c.String())
}

// peakMemory returns the peak memory of the process, as it was at most a tenth of a second ago: a
// merge finishes thousands of cells in a second.
func (r *Writer) peakMemory() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.peakRead) > time.Second/10 {
		r.peak, r.peakRead = machine.PeakMemory(), now
	}
	return r.peak
}
