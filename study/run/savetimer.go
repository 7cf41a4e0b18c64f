package run

import "time"

// A saveTimer decides when states are saved: not more often than an interval, and so seldom that
// saving takes at most a share of the time. States of some gigabytes can take longer to write than
// the work takes that a save protects. The time of a save is known only roughly before it: many disks
// take a short burst much faster than gigabytes. A save that exceeds the share is given up.
type saveTimer struct {
	every time.Duration // least time between saves
	share float64       // largest share of the time that saving may take
	now   func() time.Time
	last  time.Time     // end of the last save, or start of the run
	took  time.Duration // of the last save, or of a test of the disk
	bytes int64         // that took this long; 0: not timed yet
}

const (
	saveShare      = 1. / 20
	saveInterval   = time.Minute
	saveSpeed      = 100 << 20 // bytes per second, until the disk has been timed
	saveSlack      = 1.5       // expected times are multiplied by this, so that few saves are given up
	speedTestBytes = 32 << 20  // written to time the disk
)

// newSaveTimer returns a timer that starts now. A zero interval or share is the default.
func newSaveTimer(every time.Duration, share float64) *saveTimer {
	if every == 0 {
		every = saveInterval
	}
	if share == 0 {
		share = saveShare
	}
	return &saveTimer{every: every, share: share, now: time.Now, last: time.Now()}
}

// cost returns the expected duration of a save, from the speed of the last one or of the disk.
func (t *saveTimer) cost(bytes int64) time.Duration {
	if t.bytes > 0 {
		return time.Duration(float64(t.took) * float64(bytes) / float64(t.bytes))
	}
	return time.Duration(float64(bytes) / saveSpeed * float64(time.Second))
}

// due reports whether a save of so many bytes is due.
func (t *saveTimer) due(bytes int64) bool {
	return t.now().Sub(t.last) >= t.wait(bytes)
}

// wait returns the time from the end of a save to the next one, of so many bytes.
func (t *saveTimer) wait(bytes int64) time.Duration {
	return max(t.every, time.Duration(saveSlack*float64(t.cost(bytes))/t.share))
}

// limit returns the longest time that a save may take now. A save of less than a second is never given
// up: with an interval of some milliseconds the share is shorter than one sync.
func (t *saveTimer) limit() time.Duration {
	const most = 1000 * time.Hour // a duration overflows after 290 years
	share := time.Duration(min(float64(t.now().Sub(t.last))*t.share, float64(most)))
	return max(share, time.Second)
}

// speedTestDue reports whether the disk is to be timed: a save of so many bytes would be due if the
// disk were fast, and no speed is known.
func (t *saveTimer) speedTestDue(bytes int64) bool {
	return t.bytes == 0 && bytes > speedTestBytes && t.now().Sub(t.last) >= t.every
}

// speedTested records that writing so many bytes takes a time.
func (t *saveTimer) speedTested(bytes int64, took time.Duration) { t.bytes, t.took = bytes, took }

// gaveUp records that a save of so many bytes, which began at start, was given up. The next one is
// expected to take twice as long at least.
func (t *saveTimer) gaveUp(start time.Time, bytes int64) {
	expected := t.cost(bytes)
	t.last = t.now()
	t.took, t.bytes = 2*max(expected, t.last.Sub(start)), max(bytes, 1)
}

// saved records a save of so many bytes that began at start and ends now.
func (t *saveTimer) saved(start time.Time, bytes int64) {
	t.last = t.now()
	if bytes > 0 {
		t.took, t.bytes = t.last.Sub(start), bytes
	}
}
