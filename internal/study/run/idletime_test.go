package run

import (
	"slices"
	"testing"
	"time"
)

// TestScaleTo checks the estimates of the time that work would take on cores that no other program
// uses.
func TestScaleTo(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		cpu  time.Duration   // processor time of two goroutines that took 4 and 8 seconds
		want []time.Duration // of each
	}{
		{3 * s, []time.Duration{s, 2 * s}},      // other programs took three quarters
		{20 * s, []time.Duration{4 * s, 8 * s}}, // the work itself uses several cores
	} {
		got := []time.Duration{4 * s, 8 * s}
		if scaleTo(got, c.cpu); !slices.Equal(got, c.want) {
			t.Errorf("with %v of processor time %v, want %v", c.cpu, got, c.want)
		}
	}
}

// TestTimeIdle checks that work which uses little of the processor counts with what it uses.
func TestTimeIdle(t *testing.T) {
	t.Parallel()
	none := func(time.Duration) time.Duration { return 0 }
	if took, err := timeIdle(none, func() error { return nil }); took != 0 || err != nil {
		t.Errorf("took %v, error %v; want the lesser of the two times, 0", took, err)
	}
	var called [3]bool
	if times := timeParallel(3, 2, func(i int) { called[i] = true }); len(times) != 3 || called != [3]bool{true, true, true} {
		t.Errorf("times %v, called %v; want three", times, called)
	}
}
