package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/noether-ml/noether/internal/keyed"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/model"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// A pass is one walk of a model through data that feeds several tasks: the clean batch is run once, then the batch
// under each view.
type pass struct {
	model  *openModel
	data   *openData
	views  []View
	tasks  [][]*task // for each view
	lo, hi int       // places
	batch  int
	seed   uint64
}

// passes groups unfinished tasks into passes whose accumulators fit a bound of memory. A view's tasks stay together
// where they can, since each view of a pass costs one run of the engine and each pass one more for the clean batch.
func passes(cells []*Cell, memory int64, part Part) []*pass {
	var out []*pass
	for _, group := range groupByView(cells) {
		out = pack(out, group, memory, part)
	}
	return out
}

// viewTasks are the unfinished tasks of one model, data set and view.
type viewTasks struct {
	model *openModel
	data  *openData
	view  View
	tasks []*task
}

func groupByView(cells []*Cell) []*viewTasks {
	type key struct {
		model            *openModel
		data             *openData
		name, value, per string
		trial            int
	}
	index := map[key]*viewTasks{}
	var order []*viewTasks
	for _, c := range cells {
		k := key{c.Model, c.Data, c.View.Transform, c.View.Parameter, c.View.per, c.View.Trial}
		g := index[k]
		if g == nil {
			g = &viewTasks{model: c.Model, data: c.Data, view: c.View}
			index[k] = g
			order = append(order, g)
		}
		for _, t := range c.tasks {
			if !c.done && t.scored == nil {
				g.tasks = append(g.tasks, t)
			}
		}
	}
	return slices.DeleteFunc(order, func(g *viewTasks) bool { return len(g.tasks) == 0 })
}

// pack adds a view's tasks to the last pass while they fit, else to new ones, split by layers where one view alone is
// too large.
func pack(out []*pass, g *viewTasks, memory int64, part Part) []*pass {
	slices.SortStableFunc(g.tasks, func(a, b *task) int { return a.site.Layer.Depth - b.site.Layer.Depth })
	var total int64
	for _, t := range g.tasks {
		total += t.cost
	}
	var p *pass
	if n := len(out); n > 0 && out[n-1].model == g.model && out[n-1].data == g.data && out[n-1].cost()+total <= memory {
		p = out[n-1]
	}
	var used int64
	for _, t := range g.tasks {
		if p == nil || total > memory && used > 0 && used+t.cost > memory {
			p = &pass{model: g.model, data: g.data}
			p.lo, p.hi = part.places(g.data.layout)
			out = append(out, p)
			used = 0
		}
		if n := len(p.tasks); n == 0 || used == 0 {
			p.views = append(p.views, g.view)
			p.tasks = append(p.tasks, nil)
		}
		n := len(p.tasks) - 1
		p.tasks[n] = append(p.tasks[n], t)
		used += max(t.cost, 1)
	}
	return out
}

func (p *pass) cost() int64 {
	var sum int64
	for _, ts := range p.tasks {
		for _, t := range ts {
			sum += t.cost
		}
	}
	return sum
}

// all lists the pass's tasks.
func (p *pass) all() []*task { return slices.Concat(p.tasks...) }

// start is the first place that some task still wants.
func (p *pass) start() int {
	at := p.hi
	for _, t := range p.all() {
		at = min(at, t.seen)
	}
	return max(at, p.lo)
}

// forwards is the number of samples that the engine will run: the clean view and the moved ones.
func (p *pass) forwards() int64 {
	runs := 1
	for _, v := range p.views {
		if v.moves() {
			runs++
		}
	}
	return int64(p.hi-p.start()) * int64(runs)
}

// moves reports whether the view needs a run of the engine beyond the clean one.
func (v View) moves() bool { return v.Transform != "" && v.on != "activations" }

// layers are the tensors that the pass reads, and whether it wants class scores.
func (p *pass) layers() (layers []onnx.Layer, prediction bool) {
	for _, t := range p.all() {
		if t.cell.Measure.Needs().Prediction {
			prediction = true
		} else if !slices.ContainsFunc(layers, func(l onnx.Layer) bool { return l.Name == t.site.Layer.Name }) {
			layers = append(layers, t.site.Layer)
		}
	}
	return layers, prediction
}

// A feeder runs a pass: it holds the engine's session, the accumulators, and what one batch looks like.
type feeder struct {
	*pass
	cores        int
	session      *model.Session
	layerIndex   map[string]int
	prediction   bool
	accs         map[*task]measure.Accumulator
	clean, moved *model.Buffers
	cleanLog     tensor.Tensor
	scratch      map[string]tensor.Tensor // moved activations, for on: activations
}

// run feeds every task of the pass from its start to its end. After each batch it calls tick with the samples that the
// engine has run; an error of tick ends the pass, as a cancelled context does, and leaves every accumulator in a
// state that can be saved. An accumulator that failed is dropped.
func (f *feeder) run(ctx context.Context, tick func(forwards int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	stream := f.prepare(ctx)
	defer func() { // nobody reads the data once this has returned
		cancel()
		for range stream.items {
		}
	}()
	for item := range stream.items {
		n, err := f.feed(ctx, item)
		if err != nil {
			return err
		}
		if err := tick(n); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	if err := stream.err(); err != nil {
		return err
	}
	for _, t := range f.all() {
		t.seen = f.hi
	}
	return nil
}

// feed runs one prepared item: the clean batch (view -1), or the batch under one view.
func (f *feeder) feed(ctx context.Context, it *load) (forwards int, err error) {
	if it.view < 0 {
		if len(it.inputs) == 0 {
			return 0, nil
		}
		if err := f.session.Run(ctx, it.inputs, f.clean); err != nil {
			return 0, err
		}
		if f.prediction {
			if f.cleanLog, err = f.logProbs(f.clean); err != nil {
				return 0, err
			}
		}
		return len(it.inputs), nil
	}
	view := f.views[it.view]
	var movedLog tensor.Tensor
	if view.moves() && len(it.inputs) > 0 {
		if err := f.session.Run(ctx, it.inputs, f.moved); err != nil {
			return 0, err
		}
		if f.prediction {
			if movedLog, err = f.logProbs(f.moved); err != nil {
				return 0, err
			}
		}
	}
	if err := f.update(it, movedLog); err != nil {
		return 0, err
	}
	return len(it.inputs), nil
}

func (f *feeder) logProbs(b *model.Buffers) (tensor.Tensor, error) {
	z, err := b.LogProbs(f.data.keep)
	if err != nil {
		return z, fmt.Errorf("model %s: %w", f.model.spec.Name, err)
	}
	return z, nil
}

// update gives every task of the item's view its batch. Tasks are independent of each other, so they share the cores.
func (f *feeder) update(it *load, movedLog tensor.Tensor) error {
	if f.views[it.view].on == "activations" {
		f.moveActivations(it)
	}
	tasks := f.tasks[it.view]
	errs := make([]error, len(tasks))
	var group errgroup.Group
	group.SetLimit(f.cores)
	for i, t := range tasks {
		group.Go(func() error {
			errs[i] = f.updateTask(t, it, movedLog)
			return nil
		})
	}
	group.Wait()
	for i, t := range tasks {
		if errs[i] != nil { // of no further use: what was saved of it before is what remains
			delete(f.accs, t)
			t.seen = 0
			if t.stored != nil {
				t.seen = t.stored.Seen
			}
		}
	}
	return firstInDepth(tasks, errs)
}

// firstInDepth is the error of the shallowest layer, that of a prediction last: NaN spreads with depth, and where it
// arose is what a user wants to know.
func firstInDepth(tasks []*task, errs []error) error {
	depth := func(t *task) int {
		if t.site.Layer.Depth < 0 {
			return math.MaxInt
		}
		return t.site.Layer.Depth
	}
	var first error
	at := -1
	for i, err := range errs {
		if err != nil && (at < 0 || depth(tasks[i]) < at) {
			first, at = err, depth(tasks[i])
		}
	}
	return first
}

func (f *feeder) updateTask(t *task, it *load, movedLog tensor.Tensor) error {
	from, _ := slices.BinarySearch(it.place, t.seen)
	if from < len(it.place) {
		b := measure.Batch{Place: it.place[from:], Index: it.index[from:], Label: it.label[from:]}
		view := f.views[it.view]
		if t.cell.Measure.Needs().Prediction {
			b.Clean = f.cleanLog.Slice(from, len(it.place))
			if view.Transform != "" {
				b.Moved = movedLog.Slice(from, len(it.place))
			}
		} else {
			i := f.layerIndex[t.site.Layer.Name]
			b.Clean = f.clean.Layer(i).Slice(from, len(it.place))
			switch {
			case view.on == "activations":
				b.Moved = f.scratch[t.site.Layer.Name].Slice(from, len(it.place))
			case view.Transform != "":
				b.Moved = f.moved.Layer(i).Slice(from, len(it.place))
			}
		}
		if err := f.accs[t].Update(&b); err != nil {
			return t.explain(err)
		}
	}
	t.seen = max(t.seen, it.end)
	return nil
}

// explain says where in the study an accumulator's error arose.
func (t *task) explain(err error) error {
	where := fmt.Sprintf("%s of model %s on %s", t.cell.Measure.Name(), t.cell.Model.spec.Name, t.cell.Data.spec.Name)
	if t.site.Layer.Name != "" {
		where = fmt.Sprintf("layer %s of model %s on %s", t.site.Layer.Name, t.cell.Model.spec.Name, t.cell.Data.spec.Name)
	}
	var bad *measure.NonFinite
	if errors.As(err, &bad) && t.cell.View.Transform != "" {
		where += " under " + t.cell.View.Transform
	}
	return fmt.Errorf("%s: %w", where, err)
}

// moveActivations applies the view's Ops to the clean feature maps themselves.
func (f *feeder) moveActivations(it *load) {
	for _, t := range f.tasks[it.view] {
		name := t.site.Layer.Name
		z := f.clean.Layer(f.layerIndex[name])
		out, ok := f.scratch[name]
		if !ok || len(out.Data) < len(z.Data) {
			out = tensor.New(z.Shape...)
		}
		out = tensor.Tensor{Shape: z.Shape, Data: out.Data[:len(z.Data)]}
		f.scratch[name] = out
		for i, op := range it.ops {
			applyToMaps(op, out.At(i), z.At(i), t.site.Layer.Axes == "NHWC")
		}
	}
}

// applyToMaps moves one sample's feature maps. Channels-last maps are brought to c x h x w and back.
func applyToMaps(op transform.Op, dst, src tensor.Tensor, channelsLast bool) {
	if !channelsLast {
		op.Apply(dst, src)
		return
	}
	first, moved := tensor.New(src.Shape[2], src.Shape[0], src.Shape[1]), tensor.New(src.Shape[2], src.Shape[0], src.Shape[1])
	toChannelsFirst(first, src)
	op.Apply(moved, first)
	toChannelsLast(dst, moved)
}

func toChannelsFirst(dst, src tensor.Tensor) { // dst: c x h x w, src: h x w x c
	c := src.Shape[2]
	plane := len(src.Data) / max(c, 1)
	for p := range plane {
		for k := range c {
			dst.Data[k*plane+p] = src.Data[p*c+k]
		}
	}
}

func toChannelsLast(dst, src tensor.Tensor) { // dst: h x w x c, src: c x h x w
	c := src.Shape[0]
	plane := len(src.Data) / max(c, 1)
	for p := range plane {
		for k := range c {
			dst.Data[p*c+k] = src.Data[k*plane+p]
		}
	}
}

// drawFor picks the Op for a sample. With per: trial all samples of a trial share its parameters, but noise is each
// sample's own. The value of a listed parameter is not part of the key, so a curve over values is drawn with the same
// noise at each.
func (p *pass) drawFor(v View, index int) transform.Op {
	if v.per == "trial" {
		op := v.law.Draw(keyed.Rand(p.seed, "transform", p.data.spec.Name, v.Transform, v.Trial))
		return transform.Renew(op, keyed.Rand(p.seed, "noise", p.data.spec.Name, v.Transform, v.Trial, index))
	}
	return v.law.Draw(keyed.Rand(p.seed, "transform", p.data.spec.Name, v.Transform, v.Trial, index))
}
