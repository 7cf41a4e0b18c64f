//go:build !linux

package filesys

import (
	"io/fs"
	"os"
)

// A handle is an open file.
type handle struct{ *os.File }

// create creates a file that must not exist.
func create(path string, mode fs.FileMode) (handle, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	return handle{f}, err
}
