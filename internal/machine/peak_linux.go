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

// ResetPeak sets PeakMemory to the present resident memory, if the system allows it: the kernel
// does so when a process writes 5 to the file clear_refs.
func ResetPeak() { os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }
