package machine

import "runtime/debug"

// BoundGarbage says how much garbage may gather beside what lives: a fifth, or where that may be more than the usual memory of a study, as many bytes
// as there, down to a twentieth. Nearly all memory is a few large buffers without pointers: collecting often costs next to nothing, and
// letting the heap grow to twice what lives, as is the default, costs that much memory.
func BoundGarbage(memory int64) { debug.SetGCPercent(garbage(memory)) }

func garbage(memory int64) (percent int) {
	const usual, share, least = 256 << 20, 20, 5
	return int(max(least, min(share, share*usual/max(1, memory))))
}
