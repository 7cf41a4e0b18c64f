package rundir

import (
	"errors"
	"io/fs"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/plan"
)

// A Writer keeps the records that it has read or written if they are needed again soon: a study may
// have 100,000 of them, and reading them takes most of the time of a merge.

// ForgetRecords frees the records of finished cells, which Finish then reads again. Call it after
// Resume if there is work left, which needs the memory.
func (r *Writer) ForgetRecords() { r.records = nil }

// keepRecord keeps the record of a cell, unless the Writer keeps none.
func (r *Writer) keepRecord(c *plan.Cell, record scores.Cell) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.records != nil {
		r.records[c] = record
	}
}

// keptRecord returns the record of a cell if the Writer keeps it.
func (r *Writer) keptRecord(c *plan.Cell) (scores.Cell, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	record, ok := r.records[c]
	return record, ok
}

// readRecords returns the records of finished cells.
func (r *Writer) readRecords(finished []*plan.Cell) ([]scores.Cell, error) {
	listed, err := r.Folder.listCells()
	if err != nil {
		return nil, err
	}
	out := make([]scores.Cell, len(finished))
	err = r.onAllCores(len(finished), func(i int) (err error) {
		var kept bool
		if out[i], kept = r.keptRecord(finished[i]); !kept {
			out[i], err = r.Folder.readCell(finished[i], listed)
		}
		return err
	})
	return out, err
}

// readFinished keeps the records of all finished cells of the plan. Cells without a valid record
// are not finished.
func (r *Writer) readFinished() error {
	listed, err := r.Folder.listCells()
	if err != nil {
		return err
	}
	r.records = map[*plan.Cell]scores.Cell{}
	return r.onAllCores(len(r.Plan.Cells), func(i int) error {
		c := r.Plan.Cells[i]
		if !listed[c.Key+".json"] {
			return nil
		}
		if record, err := r.Folder.readCell(c, listed); err == nil {
			r.keepRecord(c, record)
		}
		return nil
	})
}

// onAllCores calls f for the numbers from 0 to n-1, as many at once as the run has cores.
func (r *Writer) onAllCores(n int, f func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(r.Options.Workers())
	for i := range n {
		group.Go(func() error { return f(i) })
	}
	return group.Wait()
}

// listCells returns the names of the files in the folder of the cells.
func (f Folder) listCells() (map[string]bool, error) {
	entries, err := filesys.ReadDir(f.Path("cells"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	out := make(map[string]bool, len(entries))
	for _, e := range entries {
		out[e.Name()] = true
	}
	return out, err
}
