package machine

import (
	"runtime"
	"runtime/debug"
	"testing"
)

// TestSmallHeap checks that a small heap is not collected before there are about 8 MiB of garbage.
// BoundGarbage, with 0 for a small heap, acts on the whole process, so the test is not parallel.
func TestSmallHeap(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	BoundGarbage(0)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if garbage := m.NextGC - m.HeapAlloc; garbage < 7<<20 || garbage > 16<<20 {
		t.Errorf("collected after %d bytes of garbage, want about 8 MiB", garbage)
	}
}

// TestGarbagePercent checks the value for debug.SetGCPercent, given the size in bytes to which the
// heap may grow.
func TestGarbagePercent(t *testing.T) {
	t.Parallel()
	for memory, want := range map[int64]int{0: 20, 16 << 20: 20, 256 << 20: 20, 512 << 20: 10, 1 << 30: 5, 1 << 50: 5} {
		if got := garbagePercent(memory); got != want {
			t.Errorf("garbagePercent(%d bytes) = %d, want %d", memory, got, want)
		}
	}
}
