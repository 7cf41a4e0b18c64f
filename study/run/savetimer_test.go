package run

import (
	"testing"
	"time"
)

// A fakeClock advances only when set.
type fakeClock struct{ at time.Time }

func (c *fakeClock) now() time.Time                { return c.at }
func (c *fakeClock) advance(d time.Duration)       { c.at = c.at.Add(d) }
func (c *fakeClock) timer(t *saveTimer) *saveTimer { t.now, t.last = c.now, c.at; return t }

// TestSaveTimerKeepsToItsShare runs an hour of batches on a fake clock, with states of several
// sizes on disks of several speeds.
func TestSaveTimerKeepsToItsShare(t *testing.T) {
	t.Parallel()
	const batch = time.Second / 2
	for _, bytes := range []int64{0, 1 << 10, 256 << 20, 2 << 30, 16 << 30} {
		for _, speed := range []int64{50 << 20, 500 << 20} {
			clock := &fakeClock{time.Unix(0, 0)}
			timer := clock.timer(newSaveTimer(0, 0))
			took := time.Duration(float64(bytes) / float64(speed) * float64(time.Second))
			var saving, total time.Duration
			saves := 0
			for total < time.Hour {
				clock.advance(batch)
				total += batch
				if timer.due(bytes) {
					start := clock.at
					clock.advance(took)
					timer.saved(start, bytes)
					saving += took
					total += took
					saves++
				}
			}
			if float64(saving) > 0.051*float64(total) && saves > 1 {
				t.Errorf("%d MiB at %d MiB/s: %v of %v in %d saves", bytes>>20, speed>>20, saving, total, saves)
			}
			if took < 3*time.Second && saves < 58 {
				t.Errorf("%d MiB at %d MiB/s: %d saves in an hour", bytes>>20, speed>>20, saves)
			}
		}
	}
}

func TestSaveTimerNeverSavesBeforeItsInterval(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{time.Unix(0, 0)}
	timer := clock.timer(newSaveTimer(10*time.Minute, 0))
	clock.advance(10*time.Minute - 1)
	if timer.due(0) {
		t.Error("a save before the interval")
	}
	clock.advance(1)
	if !timer.due(0) {
		t.Error("no save after the interval")
	}
}
