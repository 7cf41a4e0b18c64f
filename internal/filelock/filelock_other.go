//go:build !unix

package filelock

import (
	"io"
	"os"
	"time"
)

// idle is the time since the last change above which TryExclusive reports a file as free: no
// process is assumed to use it.
const idle = 7 * 24 * time.Hour

// Shared returns nil: there are no locks on these systems.
func Shared(string) io.Closer { return nil }

// TryExclusive returns no lock. A file is free if it does not exist or was not modified for a week.
func TryExclusive(path string) (lock io.Closer, free bool) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, os.IsNotExist(err)
	}
	return nil, time.Since(info.ModTime()) > idle
}

// Held reports that it is not known whether another process uses a file.
func Held(string) (held, known bool) { return false, false }
