package plan

import (
	"slices"
	"strings"

	"github.com/noether-ml/noether/internal/study/spec"
	"github.com/noether-ml/noether/tensor"
)

// A Pass reads the samples once. The models run on each batch clean, once for all views, then under
// each view.
type Pass struct {
	owner  passOwner
	Models []*Model
	Views  []View
	Tasks  [][]*Task // Tasks[i] are those of Views[i]
	lo, Hi int       // the pass reads the positions from lo to Hi-1 in the random order of the samples
	Batch  int       // samples that the engine runs at once
	Slots  int       // number of batches whose activations are in memory: 2 if the models run on one while another is measured
	// Reductions are what the engine computes from the layers of each model.
	Reductions map[*Model]Reductions
	mostBatch  int          // the largest Batch that fits in the device's memory; 0: not known
	noReduce   bool         // Reductions must be empty
	cores      int          // goroutines that feed accumulators
	Seed       uint64       // of the study
	packed     memoryDemand // of the tasks that add has added
}

// Limits are the memory of a pass's accumulators, in bytes, and the number of cores that feed them.
type Limits struct {
	Memory int64
	Cores  int
}

// LimitsOf returns the limits of the passes of a run.
func LimitsOf(s *spec.Study, o *Options) Limits {
	return Limits{DivideMemory(s, o).Accumulators, o.Workers()}
}

// A passOwner is what all tasks of a pass have in common. For comparisons of two models the model
// is nil, so that one pass can compare a model with several others.
type passOwner struct {
	model *Model
	data  *Data
}

func (c *Cell) owner() passOwner {
	if c.other != nil && c.other != c.Model {
		return passOwner{nil, c.Data}
	}
	return passOwner{c.Model, c.Data}
}

// maxSessions bounds the models in one pass: each has a session, with its weights and activations.
const maxSessions = 8

// DropFailed removes the tasks of failed cells, and the views and models that no remaining task
// reads.
func (p *Pass) DropFailed() {
	views, all := p.Views, p.Tasks
	p.Models, p.Views, p.Tasks = nil, nil, nil
	for i, tasks := range all {
		tasks = slices.DeleteFunc(tasks, func(t *Task) bool { return t.Cell.Failed })
		for _, t := range tasks {
			p.Models = addModels(p.Models, t)
		}
		if len(tasks) > 0 {
			p.Views, p.Tasks = append(p.Views, views[i]), append(p.Tasks, tasks)
		}
	}
}

// canRun reports whether further tasks leave at most maxSessions models, or no more than now.
func (p *Pass) canRun(tasks ...*Task) bool {
	models := slices.Clone(p.Models)
	for _, t := range tasks {
		models = addModels(models, t)
	}
	return len(models) <= max(maxSessions, len(p.Models))
}

func (p *Pass) add(t *Task) {
	last := len(p.Tasks) - 1
	p.Tasks[last] = append(p.Tasks[last], t)
	p.packed = p.packed.with(t)
	p.Models = addModels(p.Models, t)
}

func addModels(models []*Model, t *Task) []*Model {
	for _, m := range t.models() {
		if m != nil && !slices.Contains(models, m) {
			models = append(models, m)
		}
	}
	return models
}

// Data returns the data of the pass, with the labels of its model.
func (p *Pass) Data() *Data { return p.owner.data }

// A memoryDemand is in bytes: sum is what accumulators hold together, borrowed the most that one
// uses in addition while it is fed.
type memoryDemand struct {
	tasks         int
	sum, borrowed int64
}

func (w memoryDemand) with(t *Task) memoryDemand {
	return memoryDemand{w.tasks + 1, w.sum + t.cost, max(w.borrowed, t.Borrowed)}
}

func (w memoryDemand) plus(v memoryDemand) memoryDemand {
	return memoryDemand{w.tasks + v.tasks, w.sum + v.sum, max(w.borrowed, v.borrowed)}
}

// bytes returns the peak when the given number of cores feed tasks.
func (w memoryDemand) bytes(cores int) int64 { return w.sum + w.borrowed*int64(min(cores, w.tasks)) }

func demandOf(tasks []*Task) (w memoryDemand) {
	for _, t := range tasks {
		w = w.with(t)
	}
	return w
}

// AllTasks returns the tasks of all views.
func (p *Pass) AllTasks() []*Task { return slices.Concat(p.Tasks...) }

// Title returns the names of the pass's models.
func (p *Pass) Title() string {
	var names []string
	for _, m := range p.Models {
		names = append(names, m.Entry.Name)
	}
	return strings.Join(names, ", ")
}

// Start returns the first position of a sample that some task has not been fed, or Hi.
func (p *Pass) Start() int {
	at := p.Hi
	for _, t := range p.AllTasks() {
		at = min(at, t.Fed)
	}
	return max(at, p.lo)
}

// Size returns the number of samples of the pass, those that were fed by an earlier run included.
func (p *Pass) Size() int { return p.Hi - p.lo }

// CleanView stands for the clean batch where an index into Views is expected.
const CleanView = -1

// Runs reports whether the engine must run a model under a view, or clean for CleanView. A view on
// activations transforms those of the clean input.
func (p *Pass) Runs(m *Model, view int) bool {
	reads := func(i int, transformed bool) bool {
		return slices.ContainsFunc(p.Tasks[i], func(t *Task) bool {
			return slices.ContainsFunc(t.Readings(), func(r Reading) bool { return r.Model == m && r.Transformed == transformed })
		})
	}
	if view != CleanView {
		return p.Views[view].TransformsInput() && reads(view, true)
	}
	for i, v := range p.Views {
		if reads(i, false) || v.On == "activations" && reads(i, true) {
			return true
		}
	}
	return false
}

// Forwards returns the number of samples in all forward passes that are left, over all models.
func (p *Pass) Forwards() int64 {
	var sum int64
	for _, m := range p.Models {
		sum += p.ForwardsOf(m)
	}
	return sum
}

// TransformsInput reports whether the view needs a forward pass on transformed inputs.
func (v View) TransformsInput() bool { return v.Name != "" && v.On != "activations" }

// Layers returns the layers of a model that the pass reads, and whether it reads the
// log-probabilities.
func (p *Pass) Layers(m *Model) (layers []tensor.Layer, prediction bool) {
	listed := map[string]bool{}
	for _, t := range p.AllTasks() {
		for _, r := range t.Readings() {
			switch {
			case r.Model != m:
			case r.IsPrediction():
				prediction = true
			case !listed[r.Layer.Name]:
				listed[r.Layer.Name] = true
				layers = append(layers, r.Layer)
			}
		}
	}
	return layers, prediction
}
