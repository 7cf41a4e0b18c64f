//go:build unix

package main

import (
	"os"
	"runtime"
	"syscall"
)

// peakMemory is the most memory that a process that has ended has had, in bytes; 0 where the system does not say.
func peakMemory(s *os.ProcessState) int64 {
	usage, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	peak := int64(usage.Maxrss) // 32 bits wide on some systems
	if runtime.GOOS == "darwin" {
		return peak
	}
	return peak << 10
}
