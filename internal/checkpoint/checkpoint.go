// Package checkpoint implements the interface state.Checkpoint: it stores the state of unfinished
// work, such as a training, in a file or in memory.
package checkpoint

import (
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/noether-ml/noether/internal/atomicfile"
)

// A File is the path of a file that holds a state. The file need not exist before the first Save.
type File string

// Load opens the file. It returns nil, nil if the file does not exist.
func (f File) Load() (io.ReadCloser, error) {
	saved, err := os.Open(string(f))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err // not the variable saved: a nil *os.File in an io.ReadCloser is not nil
	}
	return saved, nil
}

// Save replaces the file atomically by what write writes.
func (f File) Save(write func(io.Writer) error) error { return atomicfile.WriteFunc(string(f), write) }

// A Memory holds a state in memory. Tests use it to stop and resume work, and to damage states.
type Memory struct {
	State []byte // the saved state; nil if nothing was saved
	Saves int    // number of successful calls of Save
}

// Load returns a reader of the state. It returns nil, nil if nothing was saved.
func (m *Memory) Load() (io.ReadCloser, error) {
	if m.State == nil {
		return nil, nil
	}
	return io.NopCloser(bytes.NewReader(m.State)), nil
}

// Save replaces the state by what write writes. If write fails, the state stays as it was.
func (m *Memory) Save(write func(io.Writer) error) error {
	var state bytes.Buffer
	if err := write(&state); err != nil {
		return err
	}
	m.State, m.Saves = state.Bytes(), m.Saves+1
	return nil
}
