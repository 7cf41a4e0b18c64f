package run

import (
	"context"
	"slices"
	"time"

	"github.com/noether-ml/noether/internal/study/internal/guard"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A taskTime is the time that a task takes alone on one core.
type taskTime struct {
	feed  time.Duration // for one sample
	score time.Duration // for all scores of the task
}

// shapeTimes are the times of tasks of one shape (see plan.Task.Shape): at index firstView for the
// first view of a layer in a pass, at laterView for the others. Later views may be faster, because
// a measure may share what it computes from the clean activations between views.
type shapeTimes [2]taskTime

const (
	firstView = iota
	laterView
)

// A timedTask is a task that is timed: its accumulator is fed a few batches.
type timedTask struct {
	task        *plan.Task
	viewRank    int // firstView or laterView
	view        int // index into Pass.Views
	acc         plan.Accumulator
	activations []tensor.Tensor // of the current batch, for each of the task's readings
	reduced     bool            // activations holds the values of the task's reduction instead
	ops         []transform.Op  // transformations of the samples of the batch
	scratch     []tensor.Tensor // buffers of scaled
	samples     int             // number of samples fed
	feedTime    time.Duration   // time of feeding them
	scoreTime   time.Duration   // time of computing its scores
	err         error
}

// addTime stores the times of a task as those of its shape, from which the estimator predicts the
// time of a run. The times under a first view also stand for later views until those of a later
// view are stored.
func (e *estimator) addTime(t *timedTask) {
	shape, name := t.task.Shape(), t.task.Cell.Method.Name()
	times, timed := e.shapes[shape]
	measured := taskTime{t.feedTime / time.Duration(max(1, t.samples)), t.scoreTime}
	if t.viewRank == firstView {
		times[firstView] = measured
	}
	times[laterView] = measured
	e.shapes[shape] = times
	if !timed {
		e.timedTasks[name] = append(e.timedTasks[name], t.task)
	}
}

// newTimedTasks opens accumulators for each shape of task that has not been timed: those of one
// layer, under its first view and one later view if there is one.
func (e *estimator) newTimedTasks(p *plan.Pass) (out []*timedTask, err error) {
	first := map[string]*timedTask{} // the first opened task of each shape
	views := map[string]int{}        // number of views under which a task of each shape was opened
	for view, tasks := range p.Tasks {
		for _, t := range tasks {
			shape := t.Shape()
			_, timed := e.shapes[shape]
			firstTask := first[shape]
			if timed || firstTask != nil && (views[shape] == 2 || firstTask.view == view || firstTask.task.Name() != t.Name()) {
				continue
			}
			added := &timedTask{task: t, viewRank: views[shape], view: view}
			if err := guard.Run(func() (err error) { added.acc, err = t.Open(e.currentStore()); return err }); err != nil {
				return nil, t.Explain(err)
			}
			if firstTask == nil {
				first[shape] = added
			}
			views[shape]++
			out = append(out, added)
		}
	}
	return out, nil
}

// copyReadings copies the activations of the last batch that the tasks of a view read. The samples
// of the batch were transformed by ops.
func (f *feeder) copyReadings(tasks []*timedTask, view int, ops []transform.Op) {
	for _, t := range tasks {
		if t.view != view {
			continue
		}
		t.activations, t.ops = t.activations[:0], ops
		reader := f.reader(t.task.Readings()[0])
		var i int
		if i, t.reduced = reader.reductions.Of[t.task]; t.reduced {
			t.activations = append(t.activations, copyOf(reader.transformed.Reduction(i)))
			continue
		}
		for _, r := range t.task.Readings() {
			t.activations = append(t.activations, copyOf(f.reader(r).tensor(r, f.Views[view])))
		}
	}
}

func copyOf(z tensor.Tensor) tensor.Tensor {
	return tensor.Tensor{Shape: slices.Clone(z.Shape), Data: slices.Clone(z.Data)}
}

// feedTimedTasks feeds the k-th of the given number of batches to the tasks. It feeds the samples
// several times, each time as if they were at other positions, so that every jackknife group gets
// samples. With last set it feeds all remaining positions.
func (f *feeder) feedTimedTasks(tasks []*timedTask, b *batch, k, batches int, last bool) {
	starts := timedStarts(f.Data().Layout, f.Batch)
	from, to := k*len(starts)/batches, (k+1)*len(starts)/batches
	if last {
		to = len(starts)
	}
	for i := from; i < to; i++ {
		at, end := starts[i][0], starts[i][1]
		n := min(len(b.positions), end-at)
		ids := plan.SampleIDs{Index: b.indices[:n], Label: b.labels[:n]}
		for j := range n {
			ids.Position = append(ids.Position, at+j)
		}
		for view := range f.Views {
			f.feedView(tasks, view, ids, 1-float32(i)/1024) // near 1, and different each time
		}
	}
}

// timedStarts returns the half-open ranges of positions at which tasks are fed: all batches if the
// data have at most timedBlocks blocks (up to 32 samples each, of which jackknife groups consist),
// else one batch at the beginning of each of the first timedBlocks blocks.
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
// It multiplies the activations by scale, because a measure may cache results for activations that
// it has seen.
func (f *feeder) feedView(tasks []*timedTask, view int, ids plan.SampleIDs, scale float32) {
	var fed []*timedTask
	var inputs [][]tensor.Tensor
	for _, t := range tasks {
		if t.view == view && t.err == nil {
			fed, inputs = append(fed, t), append(inputs, t.scaled(len(ids.Position), scale))
		}
	}
	took := timeParallel(len(fed), f.cores, func(i int) {
		t, ids := fed[i], ids
		if len(t.ops) > 0 {
			ids.Ops = t.ops[:len(ids.Position)]
		}
		t.err = guard.Run(func() error {
			if t.reduced {
				return t.task.FeedReduced(t.acc, ids, inputs[i][0])
			}
			return t.acc.Feed(ids, inputs[i])
		})
		t.samples += len(ids.Position)
	})
	for i, t := range fed {
		t.feedTime += took[i]
	}
}

// scaled returns the activations of the first n samples, multiplied by a factor. They are valid
// until the next call.
func (t *timedTask) scaled(n int, factor float32) []tensor.Tensor {
	for len(t.scratch) < len(t.activations) {
		t.scratch = append(t.scratch, tensor.Tensor{})
	}
	for i, x := range t.activations {
		x = x.Slice(0, n)
		t.scratch[i] = tensor.Tensor{Shape: x.Shape, Data: append(t.scratch[i].Data[:0], x.Data...)}
		for j := range t.scratch[i].Data {
			t.scratch[i].Data[j] *= factor
		}
	}
	return t.scratch
}

// scoreTimedTasks computes and times the scores of the tasks, as many at once as there are cores:
// first those of the first views, then the others, which may use results of the first.
func (e *estimator) scoreTimedTasks(ctx context.Context, tasks []*timedTask) {
	for rank := range 2 {
		scored := slices.DeleteFunc(slices.Clone(tasks), func(t *timedTask) bool { return t.viewRank != rank || t.err != nil })
		workers := max(1, min(e.Options.Workers(), len(scored)))
		e.Options.ShareBLAS(workers)
		took := timeParallel(len(scored), workers, func(i int) {
			if t := scored[i]; ctx.Err() == nil {
				t.err = guard.Run(func() error { _, err := t.task.Compute(t.acc); return err })
				t.acc = nil
			}
		})
		for i, t := range scored {
			t.scoreTime = took[i]
		}
	}
}
