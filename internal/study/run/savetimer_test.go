package run

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/results"
)

// A fakeClock advances only when set.
type fakeClock struct{ at time.Time }

func (c *fakeClock) now() time.Time                { return c.at }
func (c *fakeClock) advance(d time.Duration)       { c.at = c.at.Add(d) }
func (c *fakeClock) timer(t *saveTimer) *saveTimer { t.now, t.last = c.now, c.at; return t }

// TestSaveTimerLimitsSavingTime simulates an hour of batches on a fake clock, with states (saved
// running sums of measures) of several sizes on disks of several speeds. Saving must take at most a
// twentieth of the time. newSaveTimer(0, 0) stands for this default, and for one save a minute at
// most. The speed test of the disk writes 32 MiB, which some disks write twenty times as fast as
// larger states.
func TestSaveTimerLimitsSavingTime(t *testing.T) {
	t.Parallel()
	const batch = time.Second / 2 // duration of a batch
	for _, bytes := range []int64{0, 1 << 10, 256 << 20, 2 << 30, 4 << 30, 16 << 30} {
		for _, disk := range []struct {
			speed int64 // bytes per second
			burst int64 // factor on the speed for the first 32 MiB
		}{{50 << 20, 1}, {500 << 20, 1}, {2 << 30, 1}, {50 << 20, 20}, {500 << 20, 20}} {
			speed := disk.speed
			clock := &fakeClock{time.Unix(0, 0)}
			timer := clock.timer(newSaveTimer(0, 0))
			took := time.Duration(float64(bytes) / float64(speed) * float64(time.Second))
			var saving, total time.Duration
			saves := 0
			var first time.Duration // work before the first save
			for total < time.Hour {
				clock.advance(batch)
				total += batch
				if !timer.due(bytes) && timer.speedTestDue(bytes) {
					test := time.Duration(float64(speedTestBytes) / float64(speed*disk.burst) * float64(time.Second))
					clock.advance(test)
					timer.speedTested(speedTestBytes, test)
					saving += test
					total += test
				}
				if timer.due(bytes) {
					if saves == 0 {
						first = total
					}
					start, limit := clock.at, timer.limit()
					clock.advance(min(took, limit))
					saving += min(took, limit)
					total += min(took, limit)
					if took > limit {
						timer.cancelled(start, bytes)
						continue
					}
					timer.saved(start, bytes)
					saves++
				}
			}
			setting := fmt.Sprintf("%d MiB at %d MiB/s, %d times as fast for the first 32 MiB", bytes>>20, speed>>20, disk.burst)
			if float64(saving) > 0.05*float64(total) {
				t.Errorf("%s: %d saves took %v of %v, want a twentieth at most", setting, saves, saving, total)
			}
			// A save is due when the time since the last one is saveSlack / saveFraction = 30 times the
			// expected duration. After a speed test that was too fast, saves are cancelled and their
			// expected duration is doubled. The first save is then at most four times as late.
			wait := max(saveInterval, 30*took) + 2*time.Second
			if disk.burst > 1 {
				wait = max(saveInterval, 120*took) + 2*time.Second
			}
			if saves > 0 && first > wait || saves == 0 && wait < time.Hour {
				t.Errorf("%s: the first of %d saves after %v, want %v at most", setting, saves, first, wait)
			}
			if took < 2*time.Second && disk.burst == 1 && saves < 58 { // about one a minute
				t.Errorf("%s: %d saves in an hour, want 58 at least", setting, saves)
			}
		}
	}
}

func TestSaveTimerWaitsForInterval(t *testing.T) {
	t.Parallel()
	clock := &fakeClock{time.Unix(0, 0)}
	timer := clock.timer(newSaveTimer(10*time.Minute, 0))
	clock.advance(10*time.Minute - 1)
	if timer.due(0) { // a save of 0 bytes
		t.Error("a save before the interval")
	}
	clock.advance(1)
	if !timer.due(0) {
		t.Error("no save after the interval")
	}
}

// TestSpeedTestBeforeLargeStates checks that a run with large states measures the speed of the disk
// once its first interval has passed, and not before.
func TestSpeedTestBeforeLargeStates(t *testing.T) {
	t.Parallel()
	folder, err := results.Create(t.TempDir(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	// A task is the part of a cell, a unit of work, that one accumulator (running sums) does. This
	// one may hold 1 PiB, so that a save is never due. It has processed a sample.
	cell := new(plan.Cell)
	cell.Tasks = []*plan.Task{{Cell: cell, FullCost: 1 << 50, Fed: 1}}
	clock := &fakeClock{time.Unix(0, 0)}
	r := &runner{Writer: &results.Writer{Folder: folder, Log: telemetry.NewLogger(nil)}, timer: clock.timer(newSaveTimer(0, 0))}
	pass := &plan.Pass{Tasks: [][]*plan.Task{cell.Tasks}} // a reading of the samples for this task
	for _, step := range []time.Duration{saveInterval - 1, 1, saveInterval / 2} {
		clock.advance(step)
		r.recorded = clock.at // so that writing run.json, the record of the run, is not due
		if err := r.saveIfDue(pass); err != nil {
			t.Fatal(err)
		}
		if timed := r.timer.bytes == speedTestBytes && r.timer.duration > 0; timed != (clock.at.Sub(r.timer.last) >= saveInterval) {
			t.Errorf("after %v: timed %d bytes in %v, want %d bytes timed after the interval alone", clock.at.Sub(r.timer.last), r.timer.bytes, r.timer.duration, speedTestBytes)
		}
	}
	if left, err := os.ReadDir(folder.Path("states")); err != nil || len(left) > 0 || cell.Tasks[0].Saved > 0 {
		t.Errorf("files %v, error %v, %d samples saved; want nothing left or saved", left, err, cell.Tasks[0].Saved)
	}
}
