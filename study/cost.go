package study

import (
	"context"
	"fmt"
	"time"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Cost is what a plan asks of a model on some data, or of models that are compared.
type Cost struct {
	Model    string        `json:"model"` // several, joined by ", ", where they are compared
	Data     string        `json:"data"`
	Samples  int           `json:"samples"`
	Layers   int           `json:"layers"`
	Cells    int           `json:"cells"`
	Passes   int           `json:"passes"`
	Forwards int64         `json:"forwards"`  // samples that the engine will run
	Bytes    int64         `json:"bytes"`     // the most that accumulators hold at once
	Engine   time.Duration `json:"engine_ns"` // of the forwards, by the speed of one batch that was tried
}

// Cost tells what the plan will cost, for each model and data set. It runs one batch of each.
//
// Where dir is a run folder, what it holds already is left out.
func (p *Plan) Cost(ctx context.Context, dir string, o Options) ([]Cost, error) {
	r := &runner{plan: p, folder: Folder{dir}, o: o}
	if err := r.resume(); err != nil {
		return nil, err
	}
	b := &bill{plan: p, lines: map[string]int{}, cells: map[*Cell]bool{}, speed: map[owner]time.Duration{}}
	for _, pass := range passes(p.Cells, bound{roomFor(p.Study, o.Memory).accumulators, o.cores()}, o.Part) {
		if err := b.addPass(ctx, pass); err != nil {
			return nil, err
		}
	}
	for _, c := range r.toDo() {
		if err := b.addProcedure(ctx, c); err != nil {
			return nil, err
		}
	}
	return b.costs, nil
}

// A bill adds up costs.
type bill struct {
	plan  *Plan
	costs []Cost
	lines map[string]int // of costs, by models and data
	cells map[*Cell]bool // that have been counted
	speed map[owner]time.Duration
}

func (b *bill) line(models string, d *openData) *Cost {
	key := models + "\x00" + d.spec.Name
	i, ok := b.lines[key]
	if !ok {
		i = len(b.costs)
		b.lines[key] = i
		b.costs = append(b.costs, Cost{Model: models, Data: d.spec.Name})
	}
	return &b.costs[i]
}

// count counts a cell once, on the line that first works at it.
func (b *bill) count(c *Cost, cell *Cell) {
	if !b.cells[cell] {
		b.cells[cell] = true
		c.Cells++
	}
}

func (b *bill) addPass(ctx context.Context, p *pass) error {
	c := b.line(p.title(), p.data())
	c.Samples = p.hi - p.lo
	c.Passes++
	c.Forwards += p.forwards()
	c.Bytes = max(c.Bytes, p.cost())
	for _, t := range p.all() {
		b.count(c, t.cell)
	}
	layers := 0
	batch := batchFor(b.plan.Study, p, roomFor(b.plan.Study, 0))
	for _, m := range p.models {
		read, prediction := p.layers(m)
		layers += len(read)
		per, err := b.try(ctx, m, p.data(), read, prediction, batch)
		if err != nil {
			return err
		}
		c.Engine += per * time.Duration(p.forwardsOf(m))
	}
	c.Layers = max(c.Layers, layers)
	return nil
}

// addProcedure adds a cell of a procedure, whose engine time is taken to be that of forward passes of its first model.
func (b *bill) addProcedure(ctx context.Context, cell *Cell) error {
	c := b.line(cell.modelNames(), cell.Data)
	job := &cell.work.job
	forwards := cell.work.procedure.Work(job)
	c.Samples = max(c.Samples, job.Data.Len())
	c.Layers = max(c.Layers, len(job.A.Layers)+len(job.B.Layers))
	c.Passes++
	c.Forwards += forwards
	b.count(c, cell)
	layers := job.A.Layers
	prediction := len(layers) == 0 && cell.Model.model.Classes() > 0
	if len(layers) == 0 && !prediction {
		return nil // there is nothing that a session could be opened for
	}
	per, err := b.try(ctx, cell.Model, cell.Data, layers, prediction, 8)
	c.Engine += per * time.Duration(forwards)
	return err
}

// try measures the engine's time for one sample, once for each model and data set.
func (b *bill) try(ctx context.Context, m *openModel, d *openData, layers []onnx.Layer, prediction bool, size int) (time.Duration, error) {
	key := owner{m, d}
	if per, ok := b.speed[key]; ok {
		return per, nil
	}
	r, err := newReader(m, d, layers, prediction, size)
	if err != nil {
		return 0, err
	}
	defer r.session.Close()
	sample, err := d.first(ctx, m.model.Frame())
	if err != nil {
		return 0, err
	}
	batch := make([]tensor.Tensor, size)
	for i := range batch {
		batch[i] = sample.Input
	}
	if err := r.session.Run(ctx, batch, r.clean); err != nil { // the first run also prepares
		return 0, err
	}
	start := time.Now()
	err = r.session.Run(ctx, batch, r.clean)
	b.speed[key] = time.Since(start) / time.Duration(len(batch))
	return b.speed[key], err
}

// first is a sample that can be read.
func (d *openData) first(ctx context.Context, f dataset.Frame) (sample dataset.Sample, err error) {
	for _, place := range d.order[:min(8, len(d.order))] { // the first may be one that cannot be read
		if sample, err = d.source.At(ctx, place, f); err == nil {
			return sample, nil
		}
	}
	return sample, fmt.Errorf("data %s: %w", d.spec.Name, err)
}
