//go:build unix

package machine

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time of the process so far, user and system, over all cores; 0 if
// it is not known.
func CPUTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
