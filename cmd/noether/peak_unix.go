//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// peakMemory returns the peak memory of a process that has ended, in bytes; 0 if it is unknown.
func peakMemory(s *os.ProcessState) int64 {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	peak := int64(usage.Maxrss) // in bytes on macOS, in KiB elsewhere; 32 bits wide on some systems
	if runtime.GOOS == "darwin" {
		return peak
	}
	return peak << 10
}
