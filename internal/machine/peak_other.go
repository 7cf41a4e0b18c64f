//go:build !linux

package machine

import "runtime"

// PeakMemory is the most bytes that the process has had from the system; what libraries hold is not in it.
func PeakMemory() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}

// ResetPeak does nothing here.
func ResetPeak() {}
