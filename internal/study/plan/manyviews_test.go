package plan

import (
	"runtime"
	"testing"

	"github.com/noether-ml/noether/measure"
)

// A firstLayer is a target (what a task measures) that reads the first layer of a model. A task is
// the work of one accumulator, the running sums of a measure.
type firstLayer struct {
	target
	model *Model
}

func (f firstLayer) Depth() int          { return 0 }
func (f firstLayer) Readings() []Reading { return []Reading{{Model: f.model}} }
func (f firstLayer) models() [2]*Model   { return [2]*Model{f.model} }

// TestPackManyViews checks packAll, which distributes tasks over passes (readings of the samples)
// such that the accumulators of a pass fit in memory. A view is the input under one transformation
// value and trial. What packAll allocates must not grow with the square of the number of views:
// four bytes for each pair of 20,000 views would be 1.6 GB. The test is not parallel, because it
// measures what the whole process allocates.
func TestPackManyViews(t *testing.T) {
	const views, taskBytes = 20_000, 8
	m := &Model{}
	owner := passOwner{m, &Data{Layout: measure.Layout{N: 10, Block: 10}}} // ten samples in one block
	var groups []*viewTasks
	for i := range views {
		groups = append(groups, &viewTasks{owner: owner, view: View{Name: "rotate", Trial: i}, tasks: []*Task{{target: firstLayer{model: m}, cost: taskBytes}}})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	// The zero Shard is all samples.
	passes := packAll(groups, Limits{Memory: taskBytes * views, Cores: 2}, Shard{})
	runtime.ReadMemStats(&after)
	if len(passes) != 1 || len(passes[0].Views) != views {
		t.Fatalf("%d passes, want one of %d views", len(passes), views)
	}
	if more := packAll(groups, Limits{Memory: taskBytes*views - 1, Cores: 2}, Shard{}); len(more) != 2 {
		t.Errorf("%d passes with one byte less than all tasks need, want 2", len(more))
	}
	if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 100<<20 {
		t.Errorf("packing allocates %d MiB, want 100 at most", bytes>>20)
	}
}
