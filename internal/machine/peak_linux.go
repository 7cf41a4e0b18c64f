package machine

import "os"

// PeakMemory returns the peak resident memory in bytes since ResetPeak or the start of the process;
// 0: not known.
func PeakMemory() int64 {
	raw, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	return statusBytes(string(raw), "VmHWM:")
}

// ResetPeak resets PeakMemory, if the system allows it: the kernel does so when it reads a 5.
func ResetPeak() { os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }
