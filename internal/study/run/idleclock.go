package run

import (
	"time"

	"github.com/noether-ml/noether/internal/machine"
)

// An idleClock estimates the time that work would take if no other program used the cores. For work
// that computes all the time, the elapsed time and the processor time of this process are upper
// bounds on it.
type idleClock struct {
	start     time.Time
	cpuBefore time.Duration // processor time of the process at the start; 0: not known
}

func startClock() idleClock { return idleClock{time.Now(), machine.CPUTime()} }

func (c idleClock) wall() time.Duration { return time.Since(c.start) }

// cpu returns the processor time since the start, over all cores; 0: not known.
func (c idleClock) cpu() time.Duration {
	if c.cpuBefore == 0 {
		return 0
	}
	return machine.CPUTime() - c.cpuBefore
}

// engineIdleRatio is the assumed time of the engine (ONNX Runtime) on idle cores, relative to its
// processor time divided by the number of cores. It exceeds 1 because the engine does not keep all
// cores busy.
const engineIdleRatio = 1.2

// divide estimates the times that goroutines would take on idle cores. The argument walls holds
// their elapsed times. They ran in parallel and did all the work of the process since the start.
func (c idleClock) divide(walls []time.Duration) []time.Duration { return scaleTo(walls, c.cpu()) }

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

// idleTime returns the lesser of two upper bounds. The second may be 0: not known.
func idleTime(wall, other time.Duration) time.Duration {
	if other > 0 {
		return min(wall, other)
	}
	return wall
}
