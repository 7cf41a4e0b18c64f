//go:build unix

package fetch

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lockFor waits for an exclusive lock until the context ends. The system releases the lock when the
// process ends. On a file system without locks it returns at once.
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
