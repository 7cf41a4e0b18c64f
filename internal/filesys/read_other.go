//go:build !unix

package filesys

import (
	"errors"
	"io"
	"os"
)

// open opens a file, and returns functions that read a part of it and that close it. At the end of
// the file, read returns 0.
func open(path string) (read func([]byte) (int, error), closeFile func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	read = func(b []byte) (int, error) {
		n, err := f.Read(b)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return n, err
	}
	return read, func() { f.Close() }, nil
}

// replace renames a file.
func replace(from, to string) error { return os.Rename(from, to) }
