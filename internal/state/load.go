package state

import (
	"fmt"
	"io"
)

// A Loader has what an earlier run saved, nil where that is nothing: a checkpoint.
type Loader interface {
	Load() (io.ReadCloser, error)
}

// Load hands what was saved, if anything was, to read. That may return false once it knows that the state is of another job: the
// rest of it then does not matter. Whether the state is whole is known only when read has returned.
func Load(from Loader, kind string, version int, read func(r *Reader) (ours bool)) error {
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
