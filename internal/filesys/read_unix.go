//go:build unix

package filesys

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// open opens a file, and returns functions that read a part of it and that close it. At the end of
// the file, read returns 0. It uses system calls, since package os takes one more to register the
// file with the poller of the Go runtime.
func open(path string) (read func([]byte) (int, error), closeFile func(), err error) {
	fd, err := retried(func() (int, error) { return syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0) })
	if err != nil {
		return nil, nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	read = func(b []byte) (int, error) {
		return retried(func() (int, error) { return syscall.Read(fd, b) })
	}
	return read, func() { syscall.Close(fd) }, nil
}

// replace renames a file.
func replace(from, to string) error {
	_, err := retried(func() (int, error) { return 0, syscall.Rename(from, to) })
	if err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// retried calls a system call again while a signal interrupts it.
func retried(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}
