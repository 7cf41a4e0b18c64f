package run

import (
	"time"

	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/results"
)

// A runner is a run in progress. It reads the samples in passes, each for several tasks: a task is
// a measure at one layer, or a comparison of layers. A cell consists of the tasks of one measure.
type runner struct {
	*results.Writer
	progress plan.Progress
	accs     map[*plan.Task]plan.Accumulator // running sums, of the current pass
	store    *results.Store                  // file for running sums, of the current pass
	timer    *saveTimer                      // limits the time of saving unfinished work
	recorded time.Time                       // when the record of the run was last written
	dropped  map[string]bool                 // layers that were dropped and warned of, by model and name
	parallel parallelism
}

// A parallelism is the number of tasks that use the BLAS at once, when they are fed activations and
// when their scores are computed. The BLAS divides its threads between them.
//
// The number of threads affects rounding. A parallelism therefore follows from all tasks of a
// study: a resumed run, which has fewer left, computes the same scores to the bit.
type parallelism struct{ feeding, scoring int }

// newParallelism returns the parallelism of passes that together hold all tasks of a study.
func newParallelism(passes []*plan.Pass, cores int) parallelism {
	out := parallelism{1, 1}
	for _, p := range passes {
		for _, tasks := range p.Tasks {
			out.feeding = max(out.feeding, min(len(tasks), cores))
		}
		out.scoring = max(out.scoring, min(len(p.AllTasks()), cores))
	}
	return out
}

// noLayer is the layer of a failure that does not concern one layer alone.
const noLayer = ""

// failAndFree records the failure of a cell and frees its accumulators. With Options.FailFast it
// returns cause instead. layer is where the cell failed; inputs are the names of the samples that
// were being read.
func (r *runner) failAndFree(c *plan.Cell, layer string, inputs []string, cause error) error {
	err := r.FailCell(c, layer, inputs, cause)
	if c.Failed {
		for _, t := range c.Tasks {
			delete(r.accs, t)
		}
	}
	return err
}

// dropLayer drops a layer whose activations hold NaN or infinity, if other layers of its cell are
// measured and Options.FailFast is not set. It reports whether it did.
func (r *runner) dropLayer(t *plan.Task, cause error) bool {
	if r.Options.FailFast || !t.DropNonFinite(cause) {
		return false
	}
	r.warnDropped(t, cause)
	return true
}

// warnDropped warns of a dropped layer, the first time that it is called for the layer.
func (r *runner) warnDropped(t *plan.Task, cause error) {
	model, name := t.NonFiniteLayer(cause)
	layer := model + "\x00" + name
	if !r.dropped[layer] {
		r.Options.Warnf("%v; the other layers are measured", cause)
	}
	if r.dropped == nil {
		r.dropped = map[string]bool{}
	}
	r.dropped[layer] = true
}

// report passes the progress to Options.Progress.
func (r *runner) report() {
	if r.Options.Progress != nil {
		r.Options.Progress(r.progress)
	}
}
