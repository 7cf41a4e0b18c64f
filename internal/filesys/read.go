package filesys

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Open is os.Open for files and folders. Anything else, such as a named pipe, whose opening waits
// for another program to write to it, is an error, unless its path is in /dev, where shells have
// the pipes between programs.
func Open(path string) (*os.File, error) {
	if err := checkFile(path); err != nil {
		return nil, err
	}
	return os.Open(path)
}

// ReadFile is os.ReadFile for what Open opens.
func ReadFile(path string) ([]byte, error) {
	if err := checkFile(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// IsHidden reports whether a file or folder of data is none of the user's: its name starts with a
// dot, or it is the folder in which macOS keeps attributes of the files of a ZIP archive.
func IsHidden(name string) bool { return strings.HasPrefix(name, ".") || name == "__MACOSX" }

// checkFile returns an error if a path exists but is neither a file nor a folder.
func checkFile(path string) error {
	info, err := os.Stat(path)
	if err != nil || strings.HasPrefix(path, "/dev/") || info.Mode().IsRegular() || info.IsDir() {
		return nil // the caller returns the error
	}
	kind := "a device"
	switch {
	case info.Mode()&fs.ModeNamedPipe != 0:
		kind = "a named pipe"
	case info.Mode()&fs.ModeSocket != 0:
		kind = "a socket"
	}
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("it is %s, not a file", kind)}
}
