package plan

import (
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/transform"
)

// A Pass is one walk of models through data that feeds several tasks: the clean batch is run once,
// then the batch under each view.
type Pass struct {
	owner  passOwner
	Models []*Model
	Views  []View
	Tasks  [][]*Task // for each view
	lo, Hi int       // places
	Batch  int
	cores  int // that feed accumulators side by side
	Seed   uint64
}

// A Limits is the memory that the accumulators of a pass may hold, and how many cores feed them
// side by side.
type Limits struct {
	Memory int64
	Cores  int
}

// An passOwner is what the tasks of a pass have in common: some data, as a model sees them.
// Comparisons of two models have no model of their own, so that a model that is compared with
// several runs once for all of them.
type passOwner struct {
	model *Model
	data  *Data
}

func (c *Cell) owner() passOwner {
	if c.Other != nil && c.Other != c.Model {
		return passOwner{nil, c.Data}
	}
	return passOwner{c.Model, c.Data}
}

// maxSessions is how many models one pass runs at most: each holds its weights, its activations and
// the engine's memory.
const maxSessions = 8

// DropFailed takes out the tasks of cells that have been given up, and the models that nobody else
// reads.
func (p *Pass) DropFailed() {
	p.Models = nil
	for i, tasks := range p.Tasks {
		p.Tasks[i] = slices.DeleteFunc(tasks, func(t *Task) bool { return t.Cell.Failed })
		for _, t := range p.Tasks[i] {
			p.Models = addModels(p.Models, t)
		}
	}
}

// Passes groups unfinished tasks into passes whose accumulators fit a bound of memory. A view's
// tasks stay together where they can, since each view of a pass costs one run of the engine and
// each pass one more for the clean batch.
func Passes(cells []*Cell, b Limits, part Part) []*Pass {
	var out []*Pass
	for _, group := range groupByView(cells) {
		out = pack(out, group, b, part)
	}
	return out
}

// viewTasks are the unfinished tasks of one owner and view.
type viewTasks struct {
	owner passOwner
	view  View
	tasks []*Task
}

func groupByView(cells []*Cell) []*viewTasks {
	type key struct {
		owner            passOwner
		name, value, per string
		draw             int
	}
	index := map[key]*viewTasks{}
	var order []*viewTasks
	for _, c := range cells {
		k := key{c.owner(), c.View.Name, c.View.Parameter, c.View.Per, c.View.draw()}
		g := index[k]
		if g == nil {
			g = &viewTasks{owner: c.owner(), view: c.View}
			index[k] = g
			order = append(order, g)
		}
		for _, t := range c.Tasks {
			if !c.Done && !c.Failed && t.Scored == nil {
				g.tasks = append(g.tasks, t)
			}
		}
	}
	return slices.DeleteFunc(order, func(g *viewTasks) bool { return len(g.tasks) == 0 })
}

// draw is the trial whose draw moves the input: of what is not drawn, such as a fixed
// transformation or pairs that somebody else made, all trials are views of one kind, and the engine
// runs once for them.
func (v View) draw() int {
	if v.Transform == nil || !transform.Random(v.Transform) {
		return 0
	}
	return v.Trial
}

// pack adds a view's tasks to the last pass while they fit, else to new ones, split by layers where
// one view alone is too large.
func pack(out []*Pass, g *viewTasks, b Limits, part Part) []*Pass {
	slices.SortStableFunc(g.tasks, func(a, b *Task) int { return a.Depth() - b.Depth() })
	whole := weigh(g.tasks).bytes(b.Cores) <= b.Memory
	var p *Pass
	if n := len(out); n > 0 && out[n-1].owner == g.owner && weigh(append(out[n-1].AllTasks(), g.tasks...)).bytes(b.Cores) <= b.Memory && out[n-1].canRun(g.tasks...) {
		p = out[n-1]
	}
	var used weight
	for _, t := range g.tasks {
		if p == nil || used.tasks > 0 && (!whole && used.with(t).bytes(b.Cores) > b.Memory || !p.canRun(t)) {
			p = &Pass{owner: g.owner, cores: b.Cores}
			p.lo, p.Hi = part.Places(g.owner.data.Layout)
			out = append(out, p)
			used = weight{}
		}
		if used.tasks == 0 {
			p.Views = append(p.Views, g.view)
			p.Tasks = append(p.Tasks, nil)
		}
		p.add(t)
		used = used.with(t)
	}
	return out
}

// canRun reports whether the pass with further tasks runs no more models than it may.
func (p *Pass) canRun(tasks ...*Task) bool {
	models := slices.Clone(p.Models)
	for _, t := range tasks {
		models = addModels(models, t)
	}
	return len(models) <= max(maxSessions, len(p.Models))
}

// add adds a task to the last view.
func (p *Pass) add(t *Task) {
	last := len(p.Tasks) - 1
	p.Tasks[last] = append(p.Tasks[last], t)
	p.Models = addModels(p.Models, t)
}

func addModels(models []*Model, t *Task) []*Model {
	for _, r := range t.Readings() {
		if !slices.Contains(models, r.Model) {
			models = append(models, r.Model)
		}
	}
	return models
}

func (p *Pass) Data() *Data { return p.owner.data }

func (p *Pass) cost() int64 { return weigh(p.AllTasks()).bytes(p.cores) }

// A weight is what the accumulators of some tasks may hold together, and one of them borrow at
// most.
type weight struct {
	tasks         int
	sum, borrowed int64
}

func (w weight) with(t *Task) weight {
	return weight{w.tasks + 1, w.sum + t.cost, max(w.borrowed, t.Borrowed)}
}

// bytes counts a loan for each core that feeds a task.
func (w weight) bytes(cores int) int64 { return w.sum + w.borrowed*int64(min(cores, w.tasks)) }

func weigh(tasks []*Task) (w weight) {
	for _, t := range tasks {
		w = w.with(t)
	}
	return w
}

// AllTasks lists the pass's tasks.
func (p *Pass) AllTasks() []*Task { return slices.Concat(p.Tasks...) }

// Title names the models of the pass.
func (p *Pass) Title() string {
	var names []string
	for _, m := range p.Models {
		names = append(names, m.Entry.Name)
	}
	return strings.Join(names, ", ")
}

// Start is the first place that some task still wants.
func (p *Pass) Start() int {
	at := p.Hi
	for _, t := range p.AllTasks() {
		at = min(at, t.Seen)
	}
	return max(at, p.lo)
}

// CleanView stands for the clean batch where a view is meant.
const CleanView = -1

// Runs reports whether the engine must run a model on the clean batch, or on the batch under a
// view.
func (p *Pass) Runs(m *Model, view int) bool {
	wants := func(i int, moved bool) bool {
		return slices.ContainsFunc(p.Tasks[i], func(t *Task) bool {
			return slices.ContainsFunc(t.Readings(), func(r Reading) bool { return r.Model == m && r.Moved == moved })
		})
	}
	if view != CleanView {
		return p.Views[view].Moves() && wants(view, true)
	}
	for i, v := range p.Views {
		if wants(i, false) || v.On == "activations" && wants(i, true) {
			return true
		}
	}
	return false
}

// forwardsOf is the number of samples that the engine will run through a model: the clean view and
// the moved ones.
func (p *Pass) forwardsOf(m *Model) int64 {
	runs := 0
	for view := CleanView; view < len(p.Views); view++ {
		if p.Runs(m, view) {
			runs++
		}
	}
	return int64(p.Hi-p.Start()) * int64(runs)
}

// Forwards is the number of samples that the engine will run.
func (p *Pass) Forwards() int64 {
	var sum int64
	for _, m := range p.Models {
		sum += p.forwardsOf(m)
	}
	return sum
}

// Moves reports whether the view needs a run of the engine beyond the clean one.
func (v View) Moves() bool { return v.Name != "" && v.On != "activations" }

// Layers are the tensors of a model that the pass reads, and whether it wants class scores.
func (p *Pass) Layers(m *Model) (layers []onnx.Layer, prediction bool) {
	for _, t := range p.AllTasks() {
		for _, r := range t.Readings() {
			switch {
			case r.Model != m:
			case r.IsPrediction():
				prediction = true
			case !slices.ContainsFunc(layers, func(l onnx.Layer) bool { return l.Name == r.Layer.Name }):
				layers = append(layers, r.Layer)
			}
		}
	}
	return layers, prediction
}
