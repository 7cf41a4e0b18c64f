//go:build unix

package fetch

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockFor waits for an exclusive lock on the file path, which it creates if there is none, until
// the context ends. If the file cannot be opened or its file system has no locks, it returns at
// once, without the lock. unlock is never nil. The system releases the lock when the process ends.
func lockFor(ctx context.Context, path string) (unlock func()) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return func() {}
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || err != unix.EWOULDBLOCK || sleep(ctx, 100*time.Millisecond) != nil {
			return func() { f.Close() }
		}
	}
}
