package cluster

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/noether-ml/noether/study"
)

// A Cost is what a model takes of one task's cores, in seconds.
type Cost struct {
	Model    string  `json:"model"`
	Open     float64 `json:"open"`             // before the first sample: every task that has a part of the model pays it
	Samples  float64 `json:"samples"`          // what grows with the samples
	Scores   float64 `json:"scores"`           // what comes after the last sample
	Memory   int64   `json:"memory,omitempty"` // bytes at the most; 0 where it was not measured
	Blocks   int     `json:"blocks"`           // the most parts that the samples can be divided into
	Measured bool    `json:"measured"`         // else Samples has no unit, and compares models only
	Note     string  `json:"note,omitempty"`   // why it was not measured
}

func (c Cost) whole() float64 { return c.Open + c.Samples + c.Scores }

func (c Cost) part(k int) float64 { return c.Open + (c.Samples+c.Scores)/float64(k) }

// parts is the fewest parts that keep to a limit, where any number does.
func (c Cost) parts(limit float64) int {
	if c.whole() <= limit {
		return 1
	}
	most := max(1, c.Blocks)
	if c.Open >= limit {
		return most
	}
	k := math.Ceil((c.Samples + c.Scores) / (limit - c.Open) * (1 - 1e-12))
	return int(max(1, min(float64(most), k)))
}

// A Task is one element of a job array: one run of some whole models, or of a share of one model's samples.
type Task struct {
	Models []string   `json:"models"`
	Shard  study.Part `json:"shard,omitzero"`
	// Seconds is how long the task takes by what was measured; 0 where nothing was.
	Seconds float64 `json:"seconds,omitempty"`
	// Memory is the most bytes that it takes by what was measured; 0 where nothing was.
	Memory int64 `json:"memory,omitempty"`
}

// Estimate is the task's time as a duration.
func (t Task) Estimate() time.Duration { return time.Duration(t.Seconds * float64(time.Second)) }

// Balance divides models into at most n tasks of about equal cost; see the package comment. The longest tasks come
// first, so that an array of limited width does not end with them. The division depends on the costs
// alone.
func Balance(costs []Cost, n int) []Task {
	if len(costs) == 0 {
		return nil
	}
	n = max(1, n)
	var total float64
	for _, c := range costs {
		total += c.whole()
	}
	// Packing is not monotonic in the limit, but bisection ends at one that was tried and fits.
	low, high := total/float64(n)/2, total*(1+1e-9) // everything in one task, however the sum is rounded
	best := divide(costs, high)
	for range 60 {
		limit := (low + high) / 2
		if tasks := divide(costs, limit); len(tasks) <= n {
			best, high = tasks, limit
		} else {
			low = limit
		}
	}
	slices.SortStableFunc(best, func(a, b Task) int { return cmp.Compare(b.Seconds, a.Seconds) })
	finish(best, costs)
	return best
}

// divide makes the tasks of a limit. Seconds has the cost, whatever its unit.
func divide(costs []Cost, limit float64) []Task {
	var tasks []Task
	var small []Cost
	for _, c := range costs {
		k := c.parts(limit)
		if k == 1 && c.whole() <= limit {
			small = append(small, c)
			continue
		}
		for i := 1; i <= k; i++ {
			t := Task{Models: []string{c.Model}, Seconds: c.part(k), Memory: c.Memory}
			if k > 1 {
				t.Shard = study.Part{Index: i, Of: k}
			}
			tasks = append(tasks, t)
		}
	}
	return append(tasks, pack(small, limit)...)
}

// pack puts whole models into tasks of a limit: longest first, each into the fullest task that still takes it.
func pack(costs []Cost, limit float64) []Task {
	costs = slices.Clone(costs)
	slices.SortStableFunc(costs, func(a, b Cost) int { return cmp.Compare(b.whole(), a.whole()) })
	var tasks []Task
	for _, c := range costs {
		best := -1
		for i, t := range tasks {
			if t.Seconds+c.whole() <= limit && (best < 0 || t.Seconds > tasks[best].Seconds) {
				best = i
			}
		}
		if best < 0 {
			best = len(tasks)
			tasks = append(tasks, Task{})
		}
		t := &tasks[best]
		t.Models = append(t.Models, c.Model)
		t.Seconds += c.whole()
		t.Memory = max(t.Memory, c.Memory)
	}
	return tasks
}

// finish brings the models of a task into the order of the study, and removes times and memory that rest on a guess.
func finish(tasks []Task, costs []Cost) {
	place := map[string]int{}
	for i, c := range costs {
		place[c.Model] = i
	}
	for i := range tasks {
		t := &tasks[i]
		slices.SortFunc(t.Models, func(a, b string) int { return cmp.Compare(place[a], place[b]) })
		for _, m := range t.Models {
			c := costs[place[m]]
			if c.whole() == 0 {
				continue // it has nothing to do, or does not open
			}
			if !c.Measured {
				t.Seconds = 0
			}
			if c.Memory == 0 {
				t.Memory = 0
			}
		}
	}
}

// TasksOf is how many tasks make each about so long; where nothing was measured, a task for each model.
func TasksOf(costs []Cost, each time.Duration) int {
	var total float64
	for _, c := range costs {
		if !c.Measured {
			return len(costs)
		}
		total += c.whole()
	}
	return max(1, int(math.Ceil(total/each.Seconds())))
}
