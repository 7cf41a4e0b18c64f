package study

import (
	"context"
	"fmt"
	"time"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/tensor"
)

// A Cost is what a plan asks of a model on some data.
type Cost struct {
	Model    string        `json:"model"`
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
	var out []Cost
	index := map[string]int{}
	for _, pass := range passes(p.Cells, int64(p.Study.Memory), o.Part) {
		key := pass.model.spec.Name + "\x00" + pass.data.spec.Name
		i, ok := index[key]
		if !ok {
			i = len(out)
			index[key] = i
			out = append(out, Cost{Model: pass.model.spec.Name, Data: pass.data.spec.Name, Samples: pass.hi - pass.lo})
		}
		c := &out[i]
		c.Passes++
		c.Forwards += pass.forwards()
		c.Bytes = max(c.Bytes, pass.cost())
		layers, _ := pass.layers()
		c.Layers = max(c.Layers, len(layers))
		if c.Engine == 0 {
			per, err := p.try(ctx, pass)
			if err != nil {
				return nil, err
			}
			c.Engine = per
		}
	}
	for i := range out {
		for _, cell := range p.Cells {
			if !cell.done && cell.Model.spec.Name == out[i].Model && cell.Data.spec.Name == out[i].Data {
				out[i].Cells++
			}
		}
		out[i].Engine *= time.Duration(out[i].Forwards)
	}
	return out, nil
}

// try measures the engine's time for one sample.
func (p *Plan) try(ctx context.Context, pass *pass) (time.Duration, error) {
	r := &runner{plan: p, accs: map[*task]measure.Accumulator{}}
	f, err := r.newFeeder(pass)
	if err != nil {
		return 0, err
	}
	defer f.session.Close()
	var sample dataset.Sample
	for _, place := range pass.data.order[:min(8, len(pass.data.order))] { // the first may be one that cannot be read
		if sample, err = pass.data.source.At(ctx, place, pass.model.model.Frame()); err == nil {
			break
		}
	}
	if err != nil {
		return 0, fmt.Errorf("data %s: %w", pass.data.spec.Name, err)
	}
	batch := make([]tensor.Tensor, pass.batch)
	for i := range batch {
		batch[i] = sample.Input
	}
	if err := f.session.Run(ctx, batch, f.clean); err != nil { // the first run also prepares
		return 0, err
	}
	start := time.Now()
	err = f.session.Run(ctx, batch, f.clean)
	return time.Since(start) / time.Duration(len(batch)), err
}
