package run

import (
	"slices"
	"testing"
	"time"
)

func TestIdleTimesAddUpToTheProcessorTime(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		walls []time.Duration
		cpu   time.Duration
		want  []time.Duration
	}{
		{[]time.Duration{4 * s, 8 * s}, 3 * s, []time.Duration{s, 2 * s}},      // other programs took three quarters
		{[]time.Duration{4 * s, 8 * s}, 20 * s, []time.Duration{4 * s, 8 * s}}, // the work itself uses several cores
		{[]time.Duration{4 * s, 8 * s}, 0, []time.Duration{4 * s, 8 * s}},
		{nil, s, []time.Duration{}},
	} {
		if got := scaleTo(c.walls, c.cpu); !slices.Equal(got, c.want) {
			t.Errorf("%v with %v: %v, want %v", c.walls, c.cpu, got, c.want)
		}
	}
	if idleTime(3*s, 2*s) != 2*s || idleTime(2*s, 3*s) != 2*s || idleTime(2*s, 0) != 2*s {
		t.Error("the idle time is not the lesser time")
	}
}
