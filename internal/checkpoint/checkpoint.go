// Package checkpoint keeps what a later run goes on from, in a file or in memory. Its types are checkpoints as package train, package
// invert and package procedure ask for them.
package checkpoint

import (
	"bytes"
	"errors"
	"io"
	"os"

	"github.com/noether-ml/noether/internal/atomicfile"
)

// A File is the path of a file that is replaced whole or not at all. Until it is saved it need not exist.
type File string

// Load opens the file, nil where there is none.
func (f File) Load() (io.ReadCloser, error) {
	saved, err := os.Open(string(f))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err // and no file that is nil and an io.ReadCloser
	}
	return saved, nil
}

// Save replaces the file by what write writes.
func (f File) Save(write func(io.Writer) error) error { return atomicfile.WriteFunc(string(f), write) }

// A Memory holds a state as bytes: tests stop and resume with it, and damage it.
type Memory struct {
	State []byte // nil: nothing was saved
	Saves int    // how often
}

// Load opens the state, nil where there is none.
func (m *Memory) Load() (io.ReadCloser, error) {
	if m.State == nil {
		return nil, nil
	}
	return io.NopCloser(bytes.NewReader(m.State)), nil
}

// Save replaces the state by what write writes, unless that fails.
func (m *Memory) Save(write func(io.Writer) error) error {
	var state bytes.Buffer
	if err := write(&state); err != nil {
		return err
	}
	m.State, m.Saves = state.Bytes(), m.Saves+1
	return nil
}
