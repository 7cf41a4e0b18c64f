package machine

import (
	"os"
	"strconv"
	"strings"
)

// PeakMemory returns the peak resident memory in bytes since ResetPeak or the start of the process.
func PeakMemory() int64 {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	return statusBytes(string(raw), "VmHWM:")
}

// ResetPeak resets PeakMemory, if the system allows it.
func ResetPeak() { os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

func statusBytes(status, key string) int64 {
	_, rest, ok := strings.Cut(status, key)
	fields := strings.Fields(rest)
	if !ok || len(fields) < 2 {
		return 0
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}
