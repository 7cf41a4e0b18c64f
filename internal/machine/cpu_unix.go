//go:build unix

package machine

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time of the process so far, user and system, over all cores.
func CPUTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
