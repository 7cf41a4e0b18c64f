package study

import (
	"slices"
	"strings"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/transform"
)

// A pass is one walk of models through data that feeds several tasks: the clean batch is run once, then the batch
// under each view.
type pass struct {
	owner  owner
	models []*openModel
	views  []View
	tasks  [][]*task // for each view
	lo, hi int       // places
	batch  int
	cores  int // that feed accumulators side by side
	seed   uint64
}

// A bound is the memory that the accumulators of a pass may hold, and how many cores feed them side by side.
type bound struct {
	memory int64
	cores  int
}

// An owner is what the tasks of a pass have in common: some data, as a model sees them. Comparisons of two models have no
// model of their own, so that a model that is compared with several runs once for all of them.
type owner struct {
	model *openModel
	data  *openData
}

func (c *Cell) owner() owner {
	if c.Other != nil && c.Other != c.Model {
		return owner{nil, c.Data}
	}
	return owner{c.Model, c.Data}
}

// maxSessions is how many models one pass runs at most: each holds its weights, its activations and the engine's memory.
const maxSessions = 8

// dropFailed takes out the tasks of cells that have been given up, and the models that nobody else reads.
func (p *pass) dropFailed() {
	p.models = nil
	for i, tasks := range p.tasks {
		p.tasks[i] = slices.DeleteFunc(tasks, func(t *task) bool { return t.cell.failed })
		for _, t := range p.tasks[i] {
			p.models = addModels(p.models, t)
		}
	}
}

// passes groups unfinished tasks into passes whose accumulators fit a bound of memory. A view's tasks stay together
// where they can, since each view of a pass costs one run of the engine and each pass one more for the clean batch.
func passes(cells []*Cell, b bound, part Part) []*pass {
	var out []*pass
	for _, group := range groupByView(cells) {
		out = pack(out, group, b, part)
	}
	return out
}

// viewTasks are the unfinished tasks of one owner and view.
type viewTasks struct {
	owner owner
	view  View
	tasks []*task
}

func groupByView(cells []*Cell) []*viewTasks {
	type key struct {
		owner            owner
		name, value, per string
		draw             int
	}
	index := map[key]*viewTasks{}
	var order []*viewTasks
	for _, c := range cells {
		k := key{c.owner(), c.View.Transform, c.View.Parameter, c.View.per, c.View.draw()}
		g := index[k]
		if g == nil {
			g = &viewTasks{owner: c.owner(), view: c.View}
			index[k] = g
			order = append(order, g)
		}
		for _, t := range c.tasks {
			if !c.done && !c.failed && t.scored == nil {
				g.tasks = append(g.tasks, t)
			}
		}
	}
	return slices.DeleteFunc(order, func(g *viewTasks) bool { return len(g.tasks) == 0 })
}

// draw is the trial whose draw moves the input: of what is not drawn, such as a fixed transformation or pairs that somebody
// else made, all trials are views of one kind, and the engine runs once for them.
func (v View) draw() int {
	if v.law == nil || !transform.Random(v.law) {
		return 0
	}
	return v.Trial
}

// pack adds a view's tasks to the last pass while they fit, else to new ones, split by layers where one view alone is
// too large.
func pack(out []*pass, g *viewTasks, b bound, part Part) []*pass {
	slices.SortStableFunc(g.tasks, func(a, b *task) int { return a.depth() - b.depth() })
	whole := weigh(g.tasks).bytes(b.cores) <= b.memory
	var p *pass
	if n := len(out); n > 0 && out[n-1].owner == g.owner && weigh(append(out[n-1].all(), g.tasks...)).bytes(b.cores) <= b.memory && out[n-1].canRun(g.tasks...) {
		p = out[n-1]
	}
	var used weight
	for _, t := range g.tasks {
		if p == nil || used.tasks > 0 && (!whole && used.with(t).bytes(b.cores) > b.memory || !p.canRun(t)) {
			p = &pass{owner: g.owner, cores: b.cores}
			p.lo, p.hi = part.places(g.owner.data.layout)
			out = append(out, p)
			used = weight{}
		}
		if used.tasks == 0 {
			p.views = append(p.views, g.view)
			p.tasks = append(p.tasks, nil)
		}
		p.add(t)
		used = used.with(t)
	}
	return out
}

// canRun reports whether the pass with further tasks runs no more models than it may.
func (p *pass) canRun(tasks ...*task) bool {
	models := slices.Clone(p.models)
	for _, t := range tasks {
		models = addModels(models, t)
	}
	return len(models) <= max(maxSessions, len(p.models))
}

// add adds a task to the last view.
func (p *pass) add(t *task) {
	last := len(p.tasks) - 1
	p.tasks[last] = append(p.tasks[last], t)
	p.models = addModels(p.models, t)
}

func addModels(models []*openModel, t *task) []*openModel {
	for _, r := range t.readings() {
		if !slices.Contains(models, r.model) {
			models = append(models, r.model)
		}
	}
	return models
}

func (p *pass) data() *openData { return p.owner.data }

func (p *pass) cost() int64 { return weigh(p.all()).bytes(p.cores) }

// A weight is what the accumulators of some tasks may hold together, and one of them borrow at most.
type weight struct {
	tasks     int
	sum, loan int64
}

func (w weight) with(t *task) weight { return weight{w.tasks + 1, w.sum + t.cost, max(w.loan, t.loan)} }

// bytes counts a loan for each core that feeds a task.
func (w weight) bytes(cores int) int64 { return w.sum + w.loan*int64(min(cores, w.tasks)) }

func weigh(tasks []*task) (w weight) {
	for _, t := range tasks {
		w = w.with(t)
	}
	return w
}

// all lists the pass's tasks.
func (p *pass) all() []*task { return slices.Concat(p.tasks...) }

// title names the models of the pass.
func (p *pass) title() string {
	var names []string
	for _, m := range p.models {
		names = append(names, m.spec.Name)
	}
	return strings.Join(names, ", ")
}

// start is the first place that some task still wants.
func (p *pass) start() int {
	at := p.hi
	for _, t := range p.all() {
		at = min(at, t.seen)
	}
	return max(at, p.lo)
}

// cleanView stands for the clean batch where a view is meant.
const cleanView = -1

// runs reports whether the engine must run a model on the clean batch, or on the batch under a view.
func (p *pass) runs(m *openModel, view int) bool {
	wants := func(i int, moved bool) bool {
		return slices.ContainsFunc(p.tasks[i], func(t *task) bool {
			return slices.ContainsFunc(t.readings(), func(r reading) bool { return r.model == m && r.moved == moved })
		})
	}
	if view != cleanView {
		return p.views[view].moves() && wants(view, true)
	}
	for i, v := range p.views {
		if wants(i, false) || v.on == "activations" && wants(i, true) {
			return true
		}
	}
	return false
}

// forwardsOf is the number of samples that the engine will run through a model: the clean view and the moved ones.
func (p *pass) forwardsOf(m *openModel) int64 {
	runs := 0
	for view := cleanView; view < len(p.views); view++ {
		if p.runs(m, view) {
			runs++
		}
	}
	return int64(p.hi-p.start()) * int64(runs)
}

// forwards is the number of samples that the engine will run.
func (p *pass) forwards() int64 {
	var sum int64
	for _, m := range p.models {
		sum += p.forwardsOf(m)
	}
	return sum
}

// moves reports whether the view needs a run of the engine beyond the clean one.
func (v View) moves() bool { return v.Transform != "" && v.on != "activations" }

// layers are the tensors of a model that the pass reads, and whether it wants class scores.
func (p *pass) layers(m *openModel) (layers []onnx.Layer, prediction bool) {
	for _, t := range p.all() {
		for _, r := range t.readings() {
			switch {
			case r.model != m:
			case r.prediction():
				prediction = true
			case !slices.ContainsFunc(layers, func(l onnx.Layer) bool { return l.Name == r.layer.Name }):
				layers = append(layers, r.layer)
			}
		}
	}
	return layers, prediction
}
