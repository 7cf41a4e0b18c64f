package run

import (
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/internal/machine"
)

// timeIdle returns an estimate of the time that work takes if no other program uses the cores: the
// elapsed time or, if that is less, the time that keep gives for the processor time of the process.
func timeIdle(keep func(cpu time.Duration) time.Duration, work func() error) (time.Duration, error) {
	start, before := time.Now(), machine.CPUTime()
	err := work()
	took := time.Since(start)
	if before > 0 { // else the processor time is not known
		took = min(took, keep(machine.CPUTime()-before))
	}
	return took, err
}

// timeParallel calls work for the numbers below n on the given number of cores. It returns an
// estimate of the time that each call takes if no other program uses the cores.
func timeParallel(n, cores int, work func(i int)) []time.Duration {
	walls, before := make([]time.Duration, n), machine.CPUTime()
	var group errgroup.Group
	group.SetLimit(max(1, cores))
	for i := range n {
		group.Go(func() error {
			start := time.Now()
			work(i)
			walls[i] = time.Since(start)
			return nil
		})
	}
	group.Wait()
	if before > 0 {
		scaleTo(walls, machine.CPUTime()-before)
	}
	return walls
}

// scaleTo scales times down so that their sum is at most cpu.
func scaleTo(walls []time.Duration, cpu time.Duration) {
	var sum time.Duration
	for _, d := range walls {
		sum += d
	}
	for i, d := range walls {
		if sum > cpu {
			walls[i] = time.Duration(float64(d) * float64(cpu) / float64(sum))
		}
	}
}
