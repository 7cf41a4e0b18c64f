//go:build unix

package filesys

import (
	"errors"
	"io/fs"
	"syscall"
)

// readInto reads a file into a buffer, or into a larger one. It uses system calls, since package os
// also asks whether the file can be polled.
func readInto(path string, buffer []byte) ([]byte, error) {
	fd, err := retried(func() (int, error) { return syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer syscall.Close(fd)
	return readAll(path, buffer, func(b []byte) (int, error) {
		return retried(func() (int, error) { return syscall.Read(fd, b) })
	})
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
