package dataset

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/filesys"
)

// hdf5Signature starts an HDF5 file, such as a MATLAB file from version 7.3 on.
const hdf5Signature = "\x89HDF\r\n\x1a\n"

// hdf5Hint is the part of an error that says what to do with an HDF5 file.
const hdf5Hint = "an HDF5 file, which is not read: save its arrays by numpy.save or numpy.savez, and give the .npy or .npz file as arrays"

// explainHDF5 explains err, the error of opening path as another format. If path is an HDF5 file,
// or a folder with an HDF5 file whose name ends in .h5 or .hdf5, it returns an error with hdf5Hint.
// Otherwise it returns err.
func explainHDF5(path string, err error) error {
	entries, _ := os.ReadDir(path)
	for _, e := range entries {
		if name := e.Name(); slices.Contains([]string{".h5", ".hdf5"}, strings.ToLower(filepath.Ext(name))) && isHDF5(filepath.Join(path, name)) {
			return fmt.Errorf("%w, but %s is %s", err, name, hdf5Hint)
		}
	}
	if isHDF5(path) {
		return fmt.Errorf("it is %s", hdf5Hint)
	}
	return err
}

// isHDF5 reports whether a file starts as an HDF5 file does. It is false for a file that cannot be
// read.
func isHDF5(path string) bool {
	f, err := filesys.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, len(hdf5Signature))
	_, err = io.ReadFull(f, start)
	return err == nil && string(start) == hdf5Signature
}
