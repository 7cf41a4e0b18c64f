package machine

import "testing"

func TestGarbage(t *testing.T) {
	t.Parallel()
	for memory, want := range map[int64]int{0: 20, 16 << 20: 20, 256 << 20: 20, 512 << 20: 10, 1 << 30: 5, 1 << 50: 5} {
		if got := garbagePercent(memory); got != want {
			t.Errorf("garbage target for %d bytes: %d %%, want %d %%", memory, got, want)
		}
	}
}
