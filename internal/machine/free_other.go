//go:build !linux

package machine

// FreeMemory returns the memory that a program may take without the system swapping, in bytes; 0:
// not known.
func FreeMemory() int64 { return 0 }
