// Package filestate tells whether files are what they were when their content was hashed, and
// hashes the content of many files once.
//
// A State is the size of a file, the times of its last modification and of the last change of its
// inode, and the inode. No program can set the time of the last change: a file whose State is the
// same has not been written to, replaced or renamed. A file that was read is verified by its State
// after the reading, which costs a system call, where another hash would cost a second reading.
//
//	sums, err := filestate.Sums(ctx, folder, names) // the SHA-256 and the State of each file
//	...                                             // read one of them
//	err = sums[i].State.Check(path)                 // a *ChangedError if it was changed meanwhile
package filestate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/noether-ml/noether/internal/filesys"
)

// A State identifies the content of a file as long as the file is not changed. Times are in
// nanoseconds since 1970.
type State struct {
	Size, Modified int64
	Changed        int64  // time of the last change of the inode; 0 where the system has none
	Inode          uint64 // 0 where the system has none
}

// tick is the longest interval between two values of the clock of a file system. A file that is
// changed twice within it may have the same State.
const tick = 20 * time.Millisecond

// Of returns the state of a file. If the file was changed a moment ago, Of waits until a further
// change gives another State.
func Of(path string) (State, error) {
	info, err := os.Stat(path)
	for try := 0; err == nil && !settled(info); try++ {
		if try == 10 {
			return State{}, fmt.Errorf("%s is being written: wait until it is complete", path)
		}
		time.Sleep(tick)
		info, err = os.Stat(path)
	}
	if err != nil {
		return State{}, err
	}
	if info.IsDir() {
		return State{}, fmt.Errorf("%s is a folder, not a file", path)
	}
	if !info.Mode().IsRegular() {
		f, err := filesys.Open(path) // the error says what it is
		if err == nil {
			err = errors.Join(fmt.Errorf("%s is not a regular file", path), f.Close())
		}
		return State{}, err
	}
	return stateOf(info), nil
}

// settled reports whether a file was last changed more than a tick ago.
func settled(info fs.FileInfo) bool {
	s := stateOf(info)
	age := time.Since(time.Unix(0, max(s.Modified, s.Changed)))
	return age < 0 || age > tick // the clock of another machine may be ahead
}

// A ChangedError is the error of a file that is not what it was.
type ChangedError struct {
	Path string
	Err  error // why its state cannot be read; nil if it is another one
}

func (e *ChangedError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s is no longer what it was when its content was hashed: %v: run again", e.Path, e.Err)
	}
	return fmt.Sprintf("%s has changed since its content was hashed: run again to read the new content", e.Path)
}

func (e *ChangedError) Unwrap() error { return e.Err }

// Check returns a *ChangedError if the state of the file at path is another one.
func (s State) Check(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return &ChangedError{path, withoutPath(err)}
	}
	// The inode is left out: file systems in user space number files anew.
	if now := stateOf(info); now.Size != s.Size || now.Modified != s.Modified || now.Changed != s.Changed {
		return &ChangedError{Path: path}
	}
	return nil
}

func withoutPath(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

// passing are errors of the system that may pass: of a network file system, of a device, and of
// limits that other programs reach. A file that is replaced is missing for a moment.
var passing = []error{fs.ErrNotExist, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.EINTR, syscall.EBUSY, syscall.ENOMEM,
	syscall.ETIMEDOUT, syscall.ENXIO, syscall.ENODEV, syscall.ENOTCONN, syscall.ECONNRESET, syscall.ESTALE}

// Passing reports whether an error may pass, so that the same call may succeed later.
func Passing(err error) bool {
	for _, p := range passing {
		if errors.Is(err, p) {
			return true
		}
	}
	return false
}

// pauses are the times between attempts.
var pauses = []time.Duration{20 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, 2 * time.Second}

// Attempts is how often Retry calls a function whose errors do not pass.
var Attempts = len(pauses) + 1

// Retry calls f until it returns no error that may pass, or Attempts times, or until ctx ends. It
// returns the last error of f.
func Retry(ctx context.Context, f func() error) error {
	for _, pause := range pauses {
		err := f()
		if !Passing(err) || ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
	return f()
}
