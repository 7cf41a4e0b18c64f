package machine

import "runtime/debug"

// BoundGarbage limits the memory that garbage may occupy between two collections, in a process
// whose live heap may grow to the given number of bytes; 0 stands for a small heap. The limit is a
// fifth of the live heap if memory is at most 256 MiB. For larger values it is a smaller share,
// such that a heap of that size has 51 MiB of garbage, but at least a twentieth. Nearly all memory
// of a process that measures models is in a few large buffers without pointers, so frequent
// collections cost little, while Go's default of 100 % would double the memory.
//
// A small heap would be collected after every image that is decoded. So the process holds an array
// that is never read or written: it counts as live, but takes no memory, and lets garbage grow to 8
// MiB where the share is a fifth.
func BoundGarbage(memory int64) {
	if unused == nil {
		unused = make([]byte, 40<<20)
	}
	debug.SetGCPercent(garbagePercent(memory))
}

// unused is the array that BoundGarbage holds. Pages that were never written take no memory.
var unused []byte

// AllowGarbage sets Go's default, garbage as large as the live heap, for work on the plan or the
// records of many cells. Records are full of pointers, so with the limit of BoundGarbage
// collections would take a third of the time. The function restore sets the limit that held before
// the call.
func AllowGarbage() (restore func()) {
	before := debug.SetGCPercent(100)
	return func() { debug.SetGCPercent(before) }
}

// garbagePercent returns the limit in percent of the live heap, for debug.SetGCPercent. memory is
// in bytes.
func garbagePercent(memory int64) int {
	const smallHeap, highest, lowest = 256 << 20, 20, 5
	return int(max(lowest, min(highest, highest*smallHeap/max(1, memory))))
}
