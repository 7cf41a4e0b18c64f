//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// peakMiB returns the most memory that a process has held, in MiB.
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
