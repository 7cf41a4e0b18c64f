package state

import (
	"fmt"
	"io"
)

// A Loader returns the state that an earlier run saved, or nil if there is none.
type Loader interface {
	Load() (io.ReadCloser, error)
}

// A Checkpoint stores the state of work that can be interrupted.
type Checkpoint interface {
	Loader
	// Save replaces the saved state by what write writes, completely or not at all. It may call
	// write more than once; write must write the same bytes each time. The state is streamed, not
	// buffered, unless the checkpoint is in memory.
	Save(write func(io.Writer) error) error
}

// Due reports whether a checkpoint is not nil and wants to be saved now: some save at intervals.
func Due(c Checkpoint) bool {
	at, paced := c.(interface{ Due() bool })
	return c != nil && (!paced || at.Due())
}

// Save saves the state that write writes. kind and version are as for Load.
func Save(to Checkpoint, kind string, version int, write func(w *Writer) error) error {
	return to.Save(func(out io.Writer) error {
		w := Stream(out, kind, version)
		if err := write(w); err != nil {
			return err
		}
		return w.Close()
	})
}

// Load calls read with the saved state, if there is one. kind and version are those of the state's
// format, as for NewReader: kind names what wrote it, such as "probe". read returns false if the
// state is of another job (other data or settings), and the rest of the state is then ignored.
// Otherwise Load checks that the state is complete and unchanged.
func Load(from Loader, kind string, version int, read func(r *Reader) (matches bool)) error {
	data, err := from.Load()
	if err != nil || data == nil {
		return err
	}
	defer data.Close()
	r, err := Open(data, kind, version)
	if err == nil && read(r) {
		err = r.Close()
	}
	if err != nil {
		return fmt.Errorf("reading the checkpoint: %w", err)
	}
	return nil
}
