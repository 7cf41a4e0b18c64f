package cluster

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/noether-ml/noether/internal/study"
)

// A Cost is the time that a model takes on the cores of one task, in seconds. If no model was
// measured, its unit is unknown and it only compares models.
type Cost struct {
	Model    string  `json:"model"`
	Open     float64 `json:"open"`             // to open the model, in each task with a shard of it
	Samples  float64 `json:"samples"`          // to read and measure all samples
	Scores   float64 `json:"scores"`           // to compute the scores after the last sample
	Memory   int64   `json:"memory,omitempty"` // peak, in bytes; 0 if it was not measured
	Blocks   int     `json:"blocks"`           // largest number of shards
	Measured bool    `json:"measured"`         // false: a guess, scaled to seconds if other models were measured
	Note     string  `json:"note,omitempty"`   // why it was not measured
}

// total returns the time of a task with the whole model.
func (c Cost) total() float64 { return c.Open + c.Samples + c.Scores }

// isNothing reports whether nothing is left to run, or the model cannot be opened here.
func (c Cost) isNothing() bool { return c.total() == 0 }

// shardSeconds returns the cost of one of k shards, if they share the scores equally.
func (c Cost) shardSeconds(k int) float64 { return c.Open + (c.Samples+c.Scores)/float64(k) }

// shards returns the smallest number of shards of at most limit seconds each, or the largest
// possible number.
func (c Cost) shards(limit float64) int {
	if c.total() <= limit {
		return 1
	}
	maxShards := max(1, c.Blocks)
	if c.Open >= limit {
		return maxShards
	}
	k := math.Ceil((c.Samples + c.Scores) / (limit - c.Open) * (1 - 1e-12)) // a rounding error must not add a shard
	return int(max(1, min(float64(maxShards), k)))
}

// A Task is one element of a job array: a run of some whole models, or of a shard of one model.
// Seconds and Memory (the peak in bytes) are estimates; 0 if a model of it was not measured.
type Task struct {
	Models  []string    `json:"models"`
	Shard   study.Shard `json:"shard,omitzero"` // the zero Shard is all samples
	Seconds float64     `json:"seconds,omitempty"`
	Memory  int64       `json:"memory,omitempty"`
}

// Estimate returns Seconds as a duration.
func (t Task) Estimate() time.Duration { return time.Duration(t.Seconds * float64(time.Second)) }

// Balance divides models into at most n tasks of about equal cost, by bisection of a limit of the
// cost of a task. The longest tasks come first. n < 1 counts as 1.
func Balance(costs []Cost, n int) []Task {
	if len(costs) == 0 {
		return nil
	}
	n = max(1, n)
	var total float64
	for _, c := range costs {
		total += c.total()
	}
	// The number of tasks is not monotonic in the limit, but bisection returns tasks of a limit
	// that was tried. At the limit high, one task holds all models, also after rounding.
	low, high := total/float64(n)/2, total*(1+1e-9)
	best := divide(costs, high)
	for range 60 { // halves the range until it is a rounding error
		limit := (low + high) / 2
		if tasks := divide(costs, limit); len(tasks) <= n {
			best, high = tasks, limit
		} else {
			low = limit
		}
	}
	slices.SortStableFunc(best, func(a, b Task) int { return cmp.Compare(b.Seconds, a.Seconds) })
	finishTasks(best, costs)
	return best
}

// divide returns the tasks for a limit of their cost. Their Seconds hold the cost even if its unit
// is unknown or it is a guess; finishTasks clears such values.
func divide(costs []Cost, limit float64) []Task {
	var tasks []Task
	var small []Cost
	for _, c := range costs {
		k := c.shards(limit)
		if k == 1 && c.total() <= limit {
			small = append(small, c)
			continue
		}
		for i := 1; i <= k; i++ {
			t := Task{Models: []string{c.Model}, Seconds: c.shardSeconds(k), Memory: c.Memory}
			if k > 1 {
				t.Shard = study.Shard{Index: i, Count: k}
			}
			tasks = append(tasks, t)
		}
	}
	return append(tasks, pack(small, limit)...)
}

// pack distributes models: longest first, each into the fullest task with room for it.
func pack(costs []Cost, limit float64) []Task {
	costs = slices.Clone(costs)
	slices.SortStableFunc(costs, func(a, b Cost) int { return cmp.Compare(b.total(), a.total()) })
	var tasks []Task
	for _, c := range costs {
		best := -1
		for i, t := range tasks {
			if t.Seconds+c.total() <= limit && (best < 0 || t.Seconds > tasks[best].Seconds) {
				best = i
			}
		}
		if best < 0 {
			best = len(tasks)
			tasks = append(tasks, Task{})
		}
		t := &tasks[best]
		t.Models = append(t.Models, c.Model)
		t.Seconds += c.total()
		t.Memory = max(t.Memory, c.Memory)
	}
	return tasks
}

// finishTasks sorts the models of each task in the order of the study. It clears the time and the
// memory of a task unless they were measured for all of its models that cost anything.
func finishTasks(tasks []Task, costs []Cost) {
	order := map[string]int{}
	for i, c := range costs {
		order[c.Model] = i
	}
	for i := range tasks {
		t := &tasks[i]
		slices.SortFunc(t.Models, func(a, b string) int { return cmp.Compare(order[a], order[b]) })
		for _, m := range t.Models {
			c := costs[order[m]]
			if c.isNothing() {
				continue
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

// TaskCount returns the number of tasks into which the costs divide if each takes about a given
// time. If a cost that is not 0 was not measured, it is the number of models.
func TaskCount(costs []Cost, each time.Duration) int {
	var total float64
	for _, c := range costs {
		if !c.Measured && !c.isNothing() {
			return len(costs)
		}
		total += c.total()
	}
	return max(1, int(math.Ceil(total/each.Seconds())))
}
