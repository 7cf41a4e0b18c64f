package results

import (
	"slices"
	"time"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/store"
)

// Complete writes the records of those cells whose layers all have scores, and drops their states.
// Small records are written together, since each write waits for the disk.
func (r *Writer) Complete(cells ...*plan.Cell) error {
	defer r.Stats.During(telemetry.Saving)()
	var small []*plan.Cell
	var records []store.Record
	for _, c := range cells {
		if slices.ContainsFunc(c.Tasks, func(t *plan.Task) bool { return t.Scored == nil }) {
			continue
		}
		record, err := r.recordOf(c)
		if err != nil {
			return SaveError(err)
		}
		if isLarge(&record) {
			if err := r.finishCells([]*plan.Cell{c}, []store.Record{record}); err != nil {
				return err
			}
			continue
		}
		small, records = append(small, c), append(records, record)
	}
	if len(small) == 0 {
		return nil
	}
	return r.finishCells(small, records)
}

// isLarge reports whether a record is written by itself, so that few are in memory.
func isLarge(r *store.Record) bool {
	size := len(r.Body)
	for _, p := range r.Parts {
		size += len(p.Data)
	}
	return size >= 1<<20
}

// finishCells writes records before it drops states.
func (r *Writer) finishCells(cells []*plan.Cell, records []store.Record) error {
	if err := r.Folder.cells.Put(records...); err != nil {
		return SaveError(err)
	}
	for _, c := range cells {
		r.dropStates(c)
		r.cellDone(c)
	}
	return SaveError(r.Folder.states.Sweep())
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

// peakMemory is at most a tenth of a second old: a merge finishes thousands of cells in a second.
func (r *Writer) peakMemory() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.peakRead) > time.Second/10 {
		r.peak, r.peakRead = machine.PeakMemory(), now
	}
	return r.peak
}
