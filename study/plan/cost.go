package plan

import (
	"context"
	"fmt"
	"time"

	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// A Cost is the estimated work of a plan for one model, or several compared models, on one data
// set.
type Cost struct {
	Model    string        `json:"model"` // names of compared models are joined by ", "
	Data     string        `json:"data"`
	Samples  int           `json:"samples"`
	Layers   int           `json:"layers"`
	Cells    int           `json:"cells"`
	Passes   int           `json:"passes"`
	Forwards int64         `json:"forwards"`  // number of samples in all forward passes
	Bytes    int64         `json:"bytes"`     // peak memory of the accumulators
	Engine   time.Duration `json:"engine_ns"` // time of the forward passes, estimated from one timed batch
}

// Cost estimates the work of the plan, for each model and data set. It runs one batch of each.
// Finished cells are left out.
func (p *Plan) Cost(ctx context.Context, o Options) ([]Cost, error) {
	b := &costTally{plan: p, lines: map[string]int{}, cells: map[*Cell]bool{}, speed: map[passOwner]time.Duration{}}
	for _, pass := range Passes(p.Cells, LimitsOf(p.Study, &o), o.Part) {
		if err := b.addPass(ctx, pass); err != nil {
			return nil, err
		}
	}
	for _, c := range p.PendingProcedures(o.Part) {
		if err := b.addProcedure(ctx, c); err != nil {
			return nil, err
		}
	}
	return b.costs, nil
}

// A costTally adds up the costs of passes and procedures.
type costTally struct {
	plan  *Plan
	costs []Cost
	lines map[string]int // index into costs, by models and data
	cells map[*Cell]bool // cells already counted
	speed map[passOwner]time.Duration
}

func (b *costTally) line(models string, d *Data) *Cost {
	key := models + "\x00" + d.Entry.Name
	i, ok := b.lines[key]
	if !ok {
		i = len(b.costs)
		b.lines[key] = i
		b.costs = append(b.costs, Cost{Model: models, Data: d.Entry.Name})
	}
	return &b.costs[i]
}

// count counts a cell the first time it is seen.
func (b *costTally) count(c *Cost, cell *Cell) {
	if !b.cells[cell] {
		b.cells[cell] = true
		c.Cells++
	}
}

func (b *costTally) addPass(ctx context.Context, p *Pass) error {
	c := b.line(p.Title(), p.Data())
	c.Samples = p.Hi - p.lo
	c.Passes++
	c.Forwards += p.Forwards()
	c.Bytes = max(c.Bytes, p.cost())
	for _, t := range p.AllTasks() {
		b.count(c, t.Cell)
	}
	layers := 0
	batch := BatchSize(b.plan.Study, p, ShareMemory(b.plan.Study, &Options{}))
	for _, m := range p.Models {
		read, prediction := p.Layers(m)
		layers += len(read)
		per, err := b.timeBatch(ctx, m, p.Data(), read, prediction, batch)
		if err != nil {
			return err
		}
		c.Engine += per * time.Duration(p.forwardsOf(m))
	}
	c.Layers = max(c.Layers, layers)
	return nil
}

// addProcedure adds the cell of a procedure. Its engine time is estimated as that of forward passes
// of its first model.
func (b *costTally) addProcedure(ctx context.Context, cell *Cell) error {
	c := b.line(cell.ModelNames(), cell.Data)
	job := &cell.Procedure.Job
	forwards := cell.Procedure.Method.Work(job)
	c.Samples = max(c.Samples, job.Data.Len())
	c.Layers = max(c.Layers, len(job.A.Layers)+len(job.B.Layers))
	c.Passes++
	c.Forwards += forwards
	b.count(c, cell)
	layers := job.A.Layers
	prediction := len(layers) == 0 && cell.Model.Net.Classes() > 0
	if len(layers) == 0 && !prediction {
		return nil // no layer to read, so no session can be opened
	}
	per, err := b.timeBatch(ctx, cell.Model, cell.Data, layers, prediction, 8)
	c.Engine += per * time.Duration(forwards)
	return err
}

// timeBatch returns the engine time for one sample, measured once for each model and data set.
func (b *costTally) timeBatch(ctx context.Context, m *Model, d *Data, layers []onnx.Layer, prediction bool, size int) (time.Duration, error) {
	key := passOwner{m, d}
	if per, ok := b.speed[key]; ok {
		return per, nil
	}
	session, err := m.Net.NewBatchSession(layers, prediction, size)
	if err != nil {
		return 0, fmt.Errorf("model %s: %w", m.Entry.Name, err)
	}
	defer session.Close()
	buffers, err := session.NewBuffers(size)
	if err != nil {
		return 0, fmt.Errorf("model %s: %w", m.Entry.Name, err)
	}
	sample, err := d.firstReadable(ctx, m.Net.Frame())
	if err != nil {
		return 0, err
	}
	batch := make([]tensor.Tensor, size)
	for i := range batch {
		batch[i] = sample.Input
	}
	if err := session.Run(ctx, batch, buffers); err != nil { // the first run includes one-time initialisation
		return 0, err
	}
	start := time.Now()
	err = session.Run(ctx, batch, buffers)
	b.speed[key] = time.Since(start) / time.Duration(len(batch))
	return b.speed[key], err
}
