//go:build unix

package machine

import (
	"os"
	"runtime"
	"syscall"
)

// PeakMiB returns the largest resident set size of a process that has ended, and of its children, in
// MiB; 0: not known.
func PeakMiB(s *os.ProcessState) float64 {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" { // bytes there, KiB elsewhere
		return float64(usage.Maxrss) / (1 << 20)
	}
	return float64(usage.Maxrss) / (1 << 10)
}
