package run

import (
	"slices"
	"testing"
	"time"
)

// TestIdleTimes checks the estimates of the time that work would take on cores that no other program
// uses.
func TestIdleTimes(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		walls []time.Duration // elapsed times of goroutines that ran in parallel
		cpu   time.Duration   // processor time of all; 0: not known
		want  []time.Duration
	}{
		{[]time.Duration{4 * s, 8 * s}, 3 * s, []time.Duration{s, 2 * s}},      // other programs took three quarters
		{[]time.Duration{4 * s, 8 * s}, 20 * s, []time.Duration{4 * s, 8 * s}}, // the work itself uses several cores
		{[]time.Duration{4 * s, 8 * s}, 0, []time.Duration{4 * s, 8 * s}},
		{nil, s, []time.Duration{}},
	} {
		if got := scaleTo(c.walls, c.cpu); !slices.Equal(got, c.want) {
			t.Errorf("scaleTo(%v, %v) = %v, want %v", c.walls, c.cpu, got, c.want)
		}
	}
	// A second bound of 0 is not known.
	if idleTime(3*s, 2*s) != 2*s || idleTime(2*s, 3*s) != 2*s || idleTime(2*s, 0) != 2*s {
		t.Error("idleTime is not the lesser of the known bounds")
	}
}
