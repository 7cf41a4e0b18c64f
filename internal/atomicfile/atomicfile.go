// Package atomicfile writes files whole or not at all: a reader, or a machine that lost its power, never sees half of one.
package atomicfile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Write fills a temporary file in the same folder, brings it to the disk and gives it its name. Where anything fails, a
// file that stood there before stays as it was. Concurrent writers do not disturb each other; the last one stays.
func Write(path string, fill func(w io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := fill(f); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return os.Rename(f.Name(), path)
}
