//go:build unix

package machine

import (
	"syscall"
	"time"
)

// CPUTime is what the process has computed on all cores so far.
func CPUTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
