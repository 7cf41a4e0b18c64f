//go:build !linux

package machine

import "runtime"

// PeakMemory estimates the peak memory of the process in bytes: what the Go runtime has obtained
// from the system so far, without the memory of C libraries.
func PeakMemory() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}

// ResetPeak does nothing on this system. On Linux it makes PeakMemory start anew.
func ResetPeak() {}
