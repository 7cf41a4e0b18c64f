package state

import (
	"fmt"
	"io"
)

// A Loader is a checkpoint: it returns the state (the intermediate results of unfinished work) that
// an earlier run saved, or nil if there is none.
type Loader interface {
	Load() (io.ReadCloser, error)
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
