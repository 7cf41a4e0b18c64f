//go:build unix

package rundir

import (
	"os"
	"syscall"
	"time"
)

// lockStates locks the folder of states (saved running sums) against other processes and runs that
// save at the same time, and returns a function that ends the lock. A stopped process may hold the
// lock, so after waiting for lockTimeout it returns without having the lock. It also does so on a
// file system without locks.
func (f Folder) lockStates() (unlock func()) {
	d, err := os.Open(f.Path("states"))
	if err != nil {
		return func() {} // the first save creates the folder
	}
	for end := time.Now().Add(lockTimeout); ; time.Sleep(2 * time.Millisecond) {
		err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil || err != syscall.EWOULDBLOCK && err != syscall.EINTR || time.Now().After(end) {
			return func() { d.Close() }
		}
	}
}

const lockTimeout = 5 * time.Second
