package machine

import "runtime/debug"

// BoundGarbage sets the target of the garbage collector for a process that keeps a number of bytes
// alive: garbage may be a fifth of them, less for a large heap, and at least a twentieth. Nearly
// all memory is in a few large buffers without pointers, so frequent collections cost little, while
// the default target would double the memory.
func BoundGarbage(memory int64) { debug.SetGCPercent(garbage(memory)) }

func garbage(memory int64) (percent int) {
	const usual, share, least = 256 << 20, 20, 5
	return int(max(least, min(share, share*usual/max(1, memory))))
}
