package results

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/noether-ml/noether/internal/study/plan"
)

// A sampleTable writes samples.parquet, the table of per-sample values, while cells are merged.
// Most of the values are still in memory then, and are not read back.
type sampleTable struct {
	cells   chan []*plan.Cell
	done    chan error
	stopped bool // the table is not wanted; set before cells is closed

	mu     sync.Mutex
	values map[*plan.Cell]map[string][]statisticValues // of merged cells that are not in the table yet, by task
}

// keptSampleValues is the number of per-sample values of a cell that a sampleTable keeps in memory
// at most. Larger cells are read back, for the values of many of them may not fit into the memory.
const keptSampleValues = 1000

// startSampleTable starts to write samples.parquet. The file appears when finish is called.
func (r *Writer) startSampleTable(ctx context.Context) *sampleTable {
	t := &sampleTable{cells: make(chan []*plan.Cell, 1), done: make(chan error, 1), values: map[*plan.Cell]map[string][]statisticValues{}}
	go func() {
		err := r.Folder.write("samples.parquet", func(w io.Writer) error { return t.write(ctx, r, w) })
		for range t.cells { // after an error
		}
		if errors.Is(err, errNoTable) {
			err = nil
		}
		t.done <- err
	}()
	return t
}

// errNoTable is the error that keeps a sampleTable from appearing in the run folder.
var errNoTable = errors.New("no table of per-sample values")

func (t *sampleTable) write(ctx context.Context, r *Writer, w io.Writer) error {
	added := func(yield func(*plan.Cell) bool) {
		for cells := range t.cells {
			for _, c := range cells {
				if !yield(c) {
					return
				}
			}
		}
	}
	take := func(c *plan.Cell) (map[string][]statisticValues, error) { return t.take(r, c) }
	found, err := r.writeSamples(ctx, w, added, take)
	if err == nil && (t.stopped || !found && !r.Plan.Study.Samples) {
		return errNoTable
	}
	return err
}

// take returns the per-sample values of a cell, by task, or nil if there are none.
func (t *sampleTable) take(r *Writer, c *plan.Cell) (map[string][]statisticValues, error) {
	if c.Failed {
		return nil, nil
	}
	t.mu.Lock()
	kept := t.values[c]
	delete(t.values, c)
	t.mu.Unlock()
	if kept != nil {
		return kept, nil
	}
	return r.Folder.readPackedSamples(c.Key)
}

// keep keeps the per-sample values of a cell, by task, until they are in the table.
func (t *sampleTable) keep(c *plan.Cell, values map[string][]statisticValues) {
	n := 0
	for _, task := range values {
		for _, v := range task {
			n += len(v.Value)
		}
	}
	if n == 0 || n > keptSampleValues {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.values[c] = values
}

// add adds the values of merged cells to the table. Failed cells are left out.
func (t *sampleTable) add(cells []*plan.Cell) { t.cells <- cells }

// finish waits until the table is written. If no cell has per-sample values, and the study does not
// ask for them, there is no table.
func (t *sampleTable) finish() error {
	close(t.cells)
	return <-t.done
}

func (t *sampleTable) stop() {
	t.stopped = true
	_ = t.finish()
}
