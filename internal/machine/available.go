package machine

// AvailableMemory returns the memory that this process may still allocate without being killed, in
// bytes; 0: not known. It is the free memory of the machine, or what the process has not yet used
// of its limit (MemoryLimit: of a cgroup or of Slurm) if that is less. An eighth is subtracted, for
// other processes and for libraries. It is 1 if nothing is left of the limit.
func AvailableMemory() int64 { return availableMemory(environment{}) }

// availableMemory is AvailableMemory of an environment: the files and variables of a process or, in
// tests, others. VmRSS is the memory of the process that is in RAM.
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
