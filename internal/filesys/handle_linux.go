package filesys

import (
	"io"
	"io/fs"
	"syscall"
)

// A handle is an open file. An os.File takes five more system calls, which offer the file to the
// poller of the Go runtime; it refuses regular files.
type handle struct {
	path   string
	fd     int
	closed bool
}

// create creates a file that must not exist.
func create(path string, mode fs.FileMode) (handle, error) {
	fd, err := retried(func() (int, error) {
		return syscall.Open(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, uint32(mode.Perm()))
	})
	return handle{path: path, fd: fd}, pathError("open", path, err)
}

// Write implements io.Writer.
func (h *handle) Write(data []byte) (written int, err error) {
	for written < len(data) {
		n, err := retried(func() (int, error) { return syscall.Write(h.fd, data[written:]) })
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return written, pathError("write", h.path, err)
		}
		written += n
	}
	return written, nil
}

// Sync writes the data to the disk.
func (h *handle) Sync() error {
	_, err := retried(func() (int, error) { return 0, syscall.Fsync(h.fd) })
	return pathError("sync", h.path, err)
}

// Close closes the file. Further calls are errors.
func (h *handle) Close() error {
	if h.closed {
		return pathError("close", h.path, fs.ErrClosed)
	}
	h.closed = true
	return pathError("close", h.path, syscall.Close(h.fd))
}

// pathError returns an error of an operation on a file, or nil if there is none.
func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
