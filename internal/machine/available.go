package machine

// AvailableMemory returns the memory that this process may still allocate without being killed, in
// bytes; 0: not known. It is the lesser of the free memory of the machine and the rest of the
// process's limit, less an eighth for other processes and for libraries. It is 1 if nothing is
// left.
func AvailableMemory() int64 { return availableMemory(environment{}) }

func availableMemory(e environment) int64 {
	free := freeMemory(e)
	if limit := memoryLimit(e); limit > 0 {
		left := max(limit-statusBytes(e.read("/proc/self/status"), "VmRSS:"), 1)
		if free == 0 || left < free {
			free = left
		}
	}
	return free - free/8
}
