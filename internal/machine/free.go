package machine

// FreeMemory returns the memory that programs can allocate without swapping, in bytes, or 0 if it
// is not known, as on systems other than Linux.
func FreeMemory() int64 { return freeMemory(environment{}) }

// freeMemory is FreeMemory by the file /proc/meminfo of an environment; the zero value is that of
// this process.
func freeMemory(e environment) int64 { return statusBytes(e.read("/proc/meminfo"), "MemAvailable:") }
