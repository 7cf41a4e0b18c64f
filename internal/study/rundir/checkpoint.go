package rundir

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/train"
)

// A checkpoint is a file of the run folder in which a procedure (a measure that works in steps,
// such as the training of probes) saves its progress. It belongs to one cell (the procedure for one
// model, data set, transformation and trial) or is shared by several. The file has the format of a
// state file, in which other measures save their running sums, with one entry.
type checkpoint struct {
	writer *Writer
	cell   *plan.Cell
	path   string
}

// Load implements train.Checkpoint. It returns nil, nil if there is no usable checkpoint.
func (k *checkpoint) Load() (io.ReadCloser, error) {
	f, err := openState(k.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case errors.Is(err, errDamaged):
		k.writer.Options.Warnf("%v; what it held is computed again", err)
		return nil, nil
	case err != nil:
		return nil, err
	}
	k.cell.Data.Unreadable.Add(f.Unreadable...)
	e := f.entry("") // the only entry, which has no layer
	if e == nil || f.Cell != filepath.Base(k.path) {
		f.Close()
		return nil, nil
	}
	if err := f.verify(e); err != nil {
		f.Close()
		if !errors.Is(err, errDamaged) {
			return nil, err
		}
		k.writer.Options.Warnf("%v; what it held is computed again", err)
		return nil, nil
	}
	return struct {
		io.Reader
		io.Closer
	}{f.section(e), f}, nil
}

// Save implements train.Checkpoint.
func (k *checkpoint) Save(state func(io.Writer) error) error {
	index := &stateIndex{Cell: filepath.Base(k.path), N: k.cell.Data.Layout.N, Entries: []stateEntry{{}}, Unreadable: k.cell.Data.Unreadable.Names()}
	write := func() error {
		return writeState(k.path, index, func(w io.Writer, _ *stateEntry) error { return state(w) })
	}
	err := write()
	// The first shared checkpoint creates the folder, and every run of the study removes it when it
	// ends, possibly between MkdirAll and write.
	for attempts := 0; errors.Is(err, os.ErrNotExist) && attempts < 10; attempts++ {
		if err = filesys.MkdirAll(filepath.Dir(k.path), 0o777); err == nil {
			err = write()
		}
	}
	if err != nil {
		return SaveError(err)
	}
	return nil
}

// Checkpoint returns the checkpoint of a procedure's cell.
func (r *Writer) Checkpoint(c *plan.Cell) train.Checkpoint {
	return &checkpoint{r, c, r.Folder.state(c, plan.Shard{})} // the zero Shard: all samples
}

// SharedCheckpoint returns the checkpoint shared by all cells whose plan.SharedName for the key is
// equal: cells that differ only in the second of two compared models. The procedure chooses the
// key, which says what the checkpoint holds.
func (r *Writer) SharedCheckpoint(c *plan.Cell, key string) train.Checkpoint {
	return &checkpoint{r, c, r.Folder.shared(r.Plan.SharedName(c, key))}
}
