//go:build !linux

package machine

import "runtime"

// PeakMemory returns the memory in bytes that the Go runtime has obtained from the system, without
// that of C libraries.
func PeakMemory() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}

// ResetPeak does nothing on this system.
func ResetPeak() {}
