//go:build unix

package filelock

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Shared takes a shared lock on a file or a folder. It returns nil if that fails: another process
// has an exclusive lock, path cannot be opened, or the file system has no locks. Held takes an
// exclusive lock for a moment, so Shared tries for some milliseconds.
func Shared(path string) io.Closer {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	for wait := 100 * time.Microsecond; ; wait *= 2 {
		err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		if err == nil {
			return f
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || wait > 20*time.Millisecond {
			f.Close()
			return nil
		}
		time.Sleep(wait)
	}
}

// TryExclusive takes an exclusive lock on a file or a folder. free is false if another process
// holds a lock, path cannot be opened, or the file system has no locks. A file that does not exist
// is free and has no lock.
func TryExclusive(path string) (lock io.Closer, free bool) {
	f, err := os.Open(path)
	if err != nil {
		return nil, os.IsNotExist(err)
	}
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		f.Close()
		return nil, false
	}
	return f, true
}

// Held reports whether another process holds a lock on a file. It is false for a file that cannot
// be opened, and on a file system without locks, for which known is false.
func Held(path string) (held, known bool) {
	f, err := os.OpenFile(path, os.O_RDWR, 0) // on NFS an exclusive lock needs a file that can be written
	if err != nil {
		return false, os.IsNotExist(err)
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	return errors.Is(err, unix.EWOULDBLOCK), err == nil || errors.Is(err, unix.EWOULDBLOCK)
}
