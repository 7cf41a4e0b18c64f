package results

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/scores"
)

// ForgetRecords frees the records of finished cells, which Finish reads again. Call it after Resume
// if work is left.
func (r *Writer) ForgetRecords() { r.records = nil }

func (r *Writer) keepRecord(c *plan.Cell, record cellRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.records != nil {
		r.records[c] = record
	}
}

func (r *Writer) keptRecord(c *plan.Cell) (cellRecord, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	record, ok := r.records[c]
	return record, ok
}

// readRecords also returns the checksum of all records.
func (r *Writer) readRecords(finished []*plan.Cell) ([]scores.Cell, string, error) {
	out, sums := make([]scores.Cell, len(finished)), make([]uint32, len(finished))
	err := r.onAllCores(len(finished), func(i int) (err error) {
		record, kept := r.keptRecord(finished[i])
		if !kept {
			record, err = r.Folder.readCell(finished[i])
		}
		out[i], sums[i] = record.Cell, record.sum
		return err
	})
	return out, sumOfSums(sums), err
}

// Finished returns the finished cells, and the means over values and trials that are derived from
// them.
func (r *Writer) Finished() ([]scores.Cell, error) {
	if err := r.Folder.load(); err != nil {
		return nil, err
	}
	cells, _, err := r.readRecords(slices.DeleteFunc(slices.Clone(r.Plan.Cells), func(c *plan.Cell) bool { return !c.Done || c.Failed }))
	return scores.Derived(cells, r.unfinishedCells()...), err
}

// sumOfSums returns the CRC-32C of the checksums of records.
func sumOfSums(sums []uint32) string {
	all := make([]byte, 0, 4*len(sums))
	for _, sum := range sums {
		all = binary.BigEndian.AppendUint32(all, sum)
	}
	return scores.SumOf(all).CRC32C
}

// Cells without a valid record are not finished.
func (r *Writer) readFinished() error {
	r.records = make(map[*plan.Cell]cellRecord, len(r.Plan.Cells))
	return r.onAllCores(len(r.Plan.Cells), func(i int) error {
		c := r.Plan.Cells[i]
		if !r.Folder.HasCell(c) {
			return nil
		}
		if record, err := r.Folder.readCell(c); err == nil {
			r.keepRecord(c, record)
		}
		return nil
	})
}

// onAllCores calls f for the numbers from 0 to n-1, as many at once as the run has cores.
func (r *Writer) onAllCores(n int, f func(i int) error) error {
	return parallel(r.Options.Workers(), n, f)
}

// parallel starts no further call after an error.
func parallel(goroutines, n int, f func(i int) error) error {
	var group errgroup.Group
	var next atomic.Int64
	for range goroutines {
		group.Go(func() error {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := f(int(i)); err != nil {
					next.Store(int64(n))
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// HasCell reports whether the folder holds a record of the cell, as far as it was read.
func (f Folder) HasCell(c *plan.Cell) bool {
	_, ok := f.cells.Version(c.Key)
	return ok
}
