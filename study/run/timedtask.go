package run

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/study/internal/guard"
	"github.com/noether-ml/noether/study/plan"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A taskTime is the time of a task alone on one core.
type taskTime struct {
	feed  time.Duration // for a sample
	score time.Duration
}

// shapeTimes are the times of a shape of task: of a layer under its first view of a pass, and under
// further ones. A measure may share what it computes of the clean layer between views.
type shapeTimes [2]taskTime

// A timedTask is a task whose accumulator is fed a few batches to time it.
type timedTask struct {
	task    *plan.Task
	turn    int // 0 under the first view of the layer, 1 under another
	view    int
	acc     plan.Accumulator
	z       []tensor.Tensor // for each of the task's readings, of the current batch
	ops     []transform.Op  // of its samples
	scratch []tensor.Tensor // what scaled returned last
	n       int             // samples fed
	took    time.Duration   // feeding
	score   time.Duration
	fail    error
}

// addTime adds the times of a task to those of its shape.
func (e *estimator) addTime(t *timedTask) {
	shape, name := t.task.Shape(), t.task.Cell.Method.Name()
	was, timed := e.tasks[shape]
	now := taskTime{t.took / time.Duration(max(1, t.n)), t.score}
	if t.turn == 0 {
		was[0] = now
	}
	was[1] = now
	e.tasks[shape] = was
	if !timed {
		e.timed[name] = append(e.timed[name], t.task)
	}
}

// newTimedTasks opens accumulators for each shape of task that has not been timed: of one layer
// under two views.
func (e *estimator) newTimedTasks(p *plan.Pass) (out []*timedTask, err error) {
	first := map[string]*timedTask{}
	turns := map[string]int{}
	for view, tasks := range p.Tasks {
		for _, t := range tasks {
			shape := t.Shape()
			_, timed := e.tasks[shape]
			was := first[shape]
			if timed || was != nil && (turns[shape] == 2 || was.view == view || was.task.Name() != t.Name()) {
				continue
			}
			one := &timedTask{task: t, turn: turns[shape], view: view}
			if err := guard.Run(func() (err error) { one.acc, err = t.Open(e.storeOf()); return err }); err != nil {
				return nil, t.Explain(err)
			}
			if was == nil {
				first[shape] = one
			}
			turns[shape]++
			out = append(out, one)
		}
	}
	return out, nil
}

// keepReadings copies what the tasks of a view read of the last batch, whose samples were
// transformed by ops.
func (f *feeder) keepReadings(tasks []*timedTask, view int, ops []transform.Op) {
	for _, t := range tasks {
		if t.view != view {
			continue
		}
		t.z, t.ops = t.z[:0], ops
		for _, r := range t.task.Readings() {
			z := f.reader(r).tensor(r, f.Views[view])
			t.z = append(t.z, tensor.Tensor{Shape: slices.Clone(z.Shape), Data: slices.Clone(z.Data)})
		}
	}
}

// feedTimedTasks feeds the k-th of so many batches to the tasks. It feeds the samples several
// times, each time at other places of the order, so that every jackknife group is fed.
func (f *feeder) feedTimedTasks(tasks []*timedTask, b *batch, k, batches int, last bool) {
	starts := timedStarts(f.Data().Layout, f.Batch)
	from, to := k*len(starts)/batches, (k+1)*len(starts)/batches
	if last {
		to = len(starts)
	}
	for i := from; i < to; i++ {
		at, end := starts[i][0], starts[i][1]
		n := min(len(b.place), end-at)
		ids := plan.SampleIDs{Index: b.index[:n], Label: b.label[:n]}
		for j := range n {
			ids.Position = append(ids.Position, at+j)
		}
		for view := range f.Views {
			f.feedView(tasks, view, ids, 1-float32(i)/1024)
		}
	}
}

// timedStarts returns the ranges of places that tasks are fed, one for each call: those of all
// batches if the data are few, else the beginnings of the first blocks.
func timedStarts(l measure.Layout, batch int) (ranges [][2]int) {
	if l.N <= timedBlocks*l.Block {
		for at := 0; at < l.N; at += batch {
			ranges = append(ranges, [2]int{at, min(at+batch, l.N)})
		}
		return ranges
	}
	for block := range timedBlocks {
		at := block * l.Block
		ranges = append(ranges, [2]int{at, at + min(batch, l.Block)})
	}
	return ranges
}

// feedView feeds the first samples of a batch to the tasks of a view, in parallel, and times them.
// The activations are scaled, because a measure may recognise numbers that it has seen.
func (f *feeder) feedView(tasks []*timedTask, view int, ids plan.SampleIDs, scale float32) {
	var fed []*timedTask
	var inputs [][]tensor.Tensor
	for _, t := range tasks {
		if t.view == view && t.fail == nil {
			fed, inputs = append(fed, t), append(inputs, t.scaled(len(ids.Position), scale))
		}
	}
	clock, walls := startClock(), make([]time.Duration, len(fed))
	var group errgroup.Group
	group.SetLimit(f.cores)
	for i, t := range fed {
		group.Go(func() error {
			start := time.Now()
			ids := ids
			if len(t.ops) > 0 {
				ids.Ops = t.ops[:len(ids.Position)]
			}
			t.fail = guard.Run(func() error { return t.acc.Feed(ids, inputs[i]) })
			t.n += len(ids.Position)
			walls[i] = time.Since(start)
			return nil
		})
	}
	group.Wait()
	for i, d := range clock.shares(walls) {
		fed[i].took += d
	}
}

// scaled returns the first n samples of what the task reads, times a factor. They are valid until
// the next call.
func (t *timedTask) scaled(n int, factor float32) []tensor.Tensor {
	for len(t.scratch) < len(t.z) {
		t.scratch = append(t.scratch, tensor.Tensor{})
	}
	for i, x := range t.z {
		x = x.Slice(0, n)
		t.scratch[i] = tensor.Tensor{Shape: x.Shape, Data: append(t.scratch[i].Data[:0], x.Data...)}
		for j := range t.scratch[i].Data {
			t.scratch[i].Data[j] *= factor
		}
	}
	return t.scratch
}

// scoreTimedTasks computes the scores of the tasks, as many at once as there are cores: those of
// the first views, then the others, which may use what the first have computed.
func (e *estimator) scoreTimedTasks(ctx context.Context, tasks []*timedTask) {
	for turn := range 2 {
		e.scoreTurn(ctx, slices.DeleteFunc(slices.Clone(tasks), func(t *timedTask) bool { return t.turn != turn || t.fail != nil }))
	}
}

func (e *estimator) scoreTurn(ctx context.Context, tasks []*timedTask) {
	workers := max(1, min(e.Options.Workers(), len(tasks)))
	e.Options.ShareBLAS(workers)
	clock, walls := startClock(), make([]time.Duration, len(tasks))
	var group errgroup.Group
	group.SetLimit(workers)
	for i, t := range tasks {
		group.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			start := time.Now()
			t.fail = guard.Run(func() error { _, err := t.task.Compute(t.acc); return err })
			walls[i], t.acc = time.Since(start), nil
			return nil
		})
	}
	group.Wait()
	for i, d := range clock.shares(walls) {
		tasks[i].score = d
	}
}
