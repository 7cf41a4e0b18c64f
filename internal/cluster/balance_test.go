package cluster

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/internal/study"
)

// drawCosts returns random costs of 1 to 40 models: the seconds to open a model, to process all
// samples and to compute the scores. Measured: the costs are not guesses.
func drawCosts(t *rapid.T) []Cost {
	n := rapid.IntRange(1, 40).Draw(t, "models")
	costs := make([]Cost, n)
	for i := range costs {
		costs[i] = Cost{Model: fmt.Sprint("m", i), Open: rapid.Float64Range(0, 20).Draw(t, "open"),
			Samples: rapid.Float64Range(0, 5000).Draw(t, "samples"), Scores: rapid.Float64Range(0, 100).Draw(t, "scores"),
			Blocks: rapid.IntRange(1, 300).Draw(t, "blocks"), Measured: true}
	}
	return costs
}

// checkCoverage checks that every model is processed exactly once: whole, or in all of its shards.
func checkCoverage(t interface{ Fatalf(string, ...any) }, costs []Cost, tasks []Task) {
	shards := map[string]map[study.Shard]int{}
	for _, task := range tasks {
		if len(task.Models) == 0 || !task.Shard.Whole() && len(task.Models) != 1 {
			t.Fatalf("a task has %d models and the shard %v", len(task.Models), task.Shard)
		}
		for _, m := range task.Models {
			if shards[m] == nil {
				shards[m] = map[study.Shard]int{}
			}
			shards[m][task.Shard]++
		}
	}
	for _, c := range costs {
		shardCount := 1
		for shard, count := range shards[c.Model] {
			shardCount = max(1, shard.Count)
			if count != 1 {
				t.Fatalf("%s %v is processed %d times, want 1", c.Model, shard, count)
			}
		}
		if len(shards[c.Model]) != shardCount || shardCount > max(1, c.Blocks) {
			t.Fatalf("%s of %d blocks is divided into the shards %v, want each of them once", c.Model, c.Blocks, shards[c.Model])
		}
		delete(shards, c.Model)
	}
	if len(shards) > 0 {
		t.Fatalf("there are tasks of the models %v, which have no costs", shards)
	}
}

func TestBalanceCoversEveryModelOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		costs, n := drawCosts(t), rapid.IntRange(1, 200).Draw(t, "tasks")
		tasks := Balance(costs, n)
		if len(tasks) > n {
			t.Fatalf("%d tasks, more than the requested %d", len(tasks), n)
		}
		checkCoverage(t, costs, tasks)
	})
}

// TestBalanceIsBalanced checks that no task takes more than twice the mean if models can be divided
// into many shards and opening them costs nothing.
func TestBalanceIsBalanced(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		costs := drawCosts(t)
		var total float64
		for i := range costs {
			costs[i].Open, costs[i].Blocks = 0, 1e6
			total += costs[i].total()
		}
		n := rapid.IntRange(1, 200).Draw(t, "tasks")
		var longest float64
		for _, task := range Balance(costs, n) {
			longest = max(longest, task.Seconds)
		}
		if mean := total / float64(n); longest > 2*mean*(1+1e-9) {
			t.Fatalf("the longest task takes %g, the mean is %g", longest, mean)
		}
	})
}

// TestBalanceByHand compares tasks with those computed by hand.
func TestBalanceByHand(t *testing.T) {
	t.Parallel()
	costs := []Cost{
		{Model: "a", Samples: 10, Blocks: 100, Measured: true, Memory: 5},
		{Model: "big", Open: 1, Samples: 84, Scores: 6, Blocks: 100, Measured: true, Memory: 9},
		{Model: "b", Samples: 21, Blocks: 100, Measured: true, Memory: 7},
	}
	got := fmt.Sprint(Balance(costs, 4)) // divides the models into at most 4 tasks
	// big is divided into three tasks of 1 + 90/3 = 31 seconds; a and b make one task of 31
	// seconds. A task is printed as its models, its shard (1of3: the first of three), seconds and
	// memory.
	if want := "[{[big] 1of3 31 9} {[big] 2of3 31 9} {[big] 3of3 31 9} {[a b] all 31 7}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	costs[2].Measured, costs[2].Memory = false, 0
	for _, task := range Balance(costs, 4) {
		if hasB := len(task.Models) == 2; hasB != (task.Seconds == 0) || hasB != (task.Memory == 0) {
			t.Errorf("%+v: want estimates of 0 for a task with the unmeasured model b, and only for it", task)
		}
	}
	if got := Balance(nil, 4); got != nil {
		t.Errorf("no models give the tasks %v, want nil", got)
	}
	if got := Balance([]Cost{{Model: "m", Samples: math.MaxFloat64 / 4, Blocks: 3}}, 1000); len(got) != 3 {
		t.Errorf("a model of three blocks gives %d tasks, want 3", len(got))
	}
}

// TestTaskCount checks into how many tasks of about an hour the costs of models divide.
func TestTaskCount(t *testing.T) {
	t.Parallel()
	costs := []Cost{
		{Model: "a", Open: 10, Samples: 5000, Scores: 500, Measured: true},
		{Model: "b", Samples: 4000, Measured: true},
		{Model: "finished"}, // nothing is left to run
		{Model: "broken", Note: "it cannot be opened here"},
	}
	if got := TaskCount(costs, time.Hour); got != 3 {
		t.Errorf("9,510 seconds give %d tasks of an hour, want 3", got)
	}
	costs[2].Samples = 1 // not measured: a guess
	if got := TaskCount(costs, time.Hour); got != len(costs) {
		t.Errorf("with an unmeasured cost there are %d tasks for %d models, want one each", got, len(costs))
	}
	if got := TaskCount(costs[3:], time.Hour); got != 1 {
		t.Errorf("without costs: %d tasks, want 1", got)
	}
}
