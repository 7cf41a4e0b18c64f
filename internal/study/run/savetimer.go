package run

import (
	"cmp"
	"time"
)

// A saveTimer decides when states are saved: at most once in an interval, and so seldom that saving
// takes at most a fraction of the time. States of some gigabytes can take longer to write than the
// work since the last save took. The time of a save can only be estimated from earlier ones: many
// disks write a short burst much faster than gigabytes. A save that exceeds its limit is cancelled.
type saveTimer struct {
	interval time.Duration    // minimum time between saves
	fraction float64          // largest fraction of the time that saving may take
	now      func() time.Time // time.Now, except in tests
	last     time.Time        // end of the last save, or start of the run
	duration time.Duration    // of the last save or the speed test of the disk; after a cancelled save, an estimate
	bytes    int64            // written, or to be written, in this duration; 0: not timed yet
}

const (
	saveFraction   = 1. / 20
	saveInterval   = time.Minute
	saveSpeed      = 100 << 20 // bytes per second, until the disk has been timed
	saveSlack      = 1.5       // factor on expected times, so that few saves are cancelled
	speedTestBytes = 32 << 20  // written to time the disk
)

// newSaveTimer returns a timer that starts now. A zero interval or fraction stands for the default.
func newSaveTimer(interval time.Duration, fraction float64) *saveTimer {
	interval = cmp.Or(interval, saveInterval)
	fraction = cmp.Or(fraction, saveFraction)
	return &saveTimer{interval: interval, fraction: fraction, now: time.Now, last: time.Now()}
}

// cost returns the expected duration of a save, from the speed of the last one or of the disk.
func (t *saveTimer) cost(bytes int64) time.Duration {
	if t.bytes > 0 {
		return time.Duration(float64(t.duration) * float64(bytes) / float64(t.bytes))
	}
	return time.Duration(float64(bytes) / saveSpeed * float64(time.Second))
}

// due reports whether a save of so many bytes is due.
func (t *saveTimer) due(bytes int64) bool {
	return t.now().Sub(t.last) >= t.wait(bytes)
}

// wait returns the time from the end of a save to the next one, of so many bytes.
func (t *saveTimer) wait(bytes int64) time.Duration {
	return max(t.interval, time.Duration(saveSlack*float64(t.cost(bytes))/t.fraction))
}

// limit returns the longest time that a save may take now. It is at least a second: with an
// interval of some milliseconds the allowed time is shorter than one sync of the disk.
func (t *saveTimer) limit() time.Duration {
	const most = 1000 * time.Hour // keeps the product below the overflow of time.Duration, 290 years
	allowed := time.Duration(min(float64(t.now().Sub(t.last))*t.fraction, float64(most)))
	return max(allowed, time.Second)
}

// speedTestDue reports whether the disk is to be timed before a save of so many bytes: its speed is
// not known, the interval is over, and the save is larger than a speed test.
func (t *saveTimer) speedTestDue(bytes int64) bool {
	return t.bytes == 0 && bytes > speedTestBytes && t.now().Sub(t.last) >= t.interval
}

// speedTested records how long writing so many bytes took in the speed test.
func (t *saveTimer) speedTested(bytes int64, took time.Duration) { t.bytes, t.duration = bytes, took }

// cancelled records that a save of so many bytes, which began at start, was cancelled. The next one
// is expected to take at least twice as long.
func (t *saveTimer) cancelled(start time.Time, bytes int64) {
	expected := t.cost(bytes)
	t.last = t.now()
	t.duration, t.bytes = 2*max(expected, t.last.Sub(start)), max(bytes, 1)
}

// saved records a save of so many bytes that began at start and ends now.
func (t *saveTimer) saved(start time.Time, bytes int64) {
	t.last = t.now()
	if bytes > 0 {
		t.duration, t.bytes = t.last.Sub(start), bytes
	}
}
