package machine

import "runtime/debug"

// BoundGarbage sets the target of the garbage collector for a process whose live heap has a number
// of bytes. Up to 256 MiB, garbage may be a fifth of it. Above that, the bound is a fifth of 256
// MiB, but at least a twentieth of the heap. Nearly all memory is in a few large buffers without
// pointers, so frequent collections cost little, while the default target would double the memory.
func BoundGarbage(memory int64) { debug.SetGCPercent(garbagePercent(memory)) }

// AllowGarbage sets the collector's default target, for the end of a process that reads the records
// of many cells. These are full of pointers, so frequent collections cost a third of the time.
func AllowGarbage() { debug.SetGCPercent(100) }

// garbagePercent returns the target for debug.SetGCPercent.
func garbagePercent(memory int64) int {
	const smallHeap, highest, lowest = 256 << 20, 20, 5
	return int(max(lowest, min(highest, highest*smallHeap/max(1, memory))))
}
