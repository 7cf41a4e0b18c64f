//go:build !unix

package filesys

import (
	"errors"
	"io"
	"os"
)

// readInto reads a file into a buffer, or into a larger one.
func readInto(path string, buffer []byte) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(path, buffer, func(b []byte) (int, error) {
		n, err := f.Read(b)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return n, err
	})
}
