package run

import (
	"time"

	"github.com/noether-ml/noether/internal/machine"
)

// An idleClock estimates the time that work would take if no other program used the cores. The
// elapsed time is an upper bound; the processor time of the process is another one.
type idleClock struct {
	start time.Time
	used  time.Duration // processor time at the start; 0: not known
}

func startClock() idleClock { return idleClock{time.Now(), machine.CPUTime()} }

func (c idleClock) wall() time.Duration { return time.Since(c.start) }

// cpu returns the processor time since the start, over all cores; 0: not known.
func (c idleClock) cpu() time.Duration {
	if c.used == 0 {
		return 0
	}
	return machine.CPUTime() - c.used
}

// engineIdle is the time that the engine takes on idle cores, relative to its processor time
// divided by the number of cores. It exceeds 1 because the engine does not keep all cores busy.
const engineIdle = 1.2

// shares estimates the times of goroutines on idle cores from the times for which they ran beside
// each other. They did all the work of the process.
func (c idleClock) shares(walls []time.Duration) []time.Duration { return scaleTo(walls, c.cpu()) }

// scaleTo scales times down so that their sum is at most cpu, unless cpu is 0: not known.
func scaleTo(walls []time.Duration, cpu time.Duration) []time.Duration {
	var sum time.Duration
	for _, d := range walls {
		sum += d
	}
	out := make([]time.Duration, len(walls))
	for i, d := range walls {
		out[i] = d
		if cpu > 0 && sum > cpu {
			out[i] = time.Duration(float64(d) * float64(cpu) / float64(sum))
		}
	}
	return out
}

// idleTime returns the lesser of two times, of which the second may be 0: not known.
func idleTime(wall, other time.Duration) time.Duration {
	if other > 0 {
		return min(wall, other)
	}
	return wall
}
