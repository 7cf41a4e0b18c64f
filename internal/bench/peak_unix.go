//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// peakMiB returns the largest resident set size of a process that has ended, in MiB; 0 if it is not
// known.
func peakMiB(s *os.ProcessState) float64 {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" { // bytes there, KiB elsewhere
		return float64(usage.Maxrss) / (1 << 20)
	}
	return float64(usage.Maxrss) / (1 << 10)
}
