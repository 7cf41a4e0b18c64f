package plan

import "time"

// A Cost is the estimated work for one model, or several compared models, on one data set. The
// times are those of an idle machine.
type Cost struct {
	Model    string        `json:"model"` // names of compared models are joined by ", "
	Data     string        `json:"data"`
	Samples  int           `json:"samples"`
	Layers   int           `json:"layers"` // number of different layers that the passes and procedures read
	Cells    int           `json:"cells"`  // a measure under one transformation value each, see Cell
	Passes   int           `json:"passes"`
	Forwards int64         `json:"forwards"`   // number of samples in all forward passes
	Bytes    int64         `json:"bytes"`      // peak memory of the accumulators
	Peak     int64         `json:"peak_bytes"` // peak memory of the process
	Open     time.Duration `json:"open_ns"`    // opening the models for all passes
	Read     time.Duration `json:"read_ns"`    // decoding and transforming samples
	Engine   time.Duration `json:"engine_ns"`  // forward passes
	Measure  time.Duration `json:"measure_ns"` // updating accumulators with activations
	Score    time.Duration `json:"score_ns"`   // computing scores
	Save     time.Duration `json:"save_ns"`    // writing states and records
	Total    time.Duration `json:"total_ns"`
}

// Cost returns the memory of the accumulators of the pass's tasks, in bytes.
func (p *Pass) Cost() int64 { return demandOf(p.AllTasks()).bytes(p.cores) }

// ForwardsOf returns the number of samples in the forward passes of one model.
func (p *Pass) ForwardsOf(m *Model) int64 {
	runs := 0
	for view := CleanView; view < len(p.Views); view++ {
		if p.Runs(m, view) {
			runs++
		}
	}
	return int64(p.Samples()) * int64(runs)
}

// Samples returns the number of samples that are left to feed to the accumulators.
func (p *Pass) Samples() int { return p.Hi - p.Start() }

// Cost returns the memory that the accumulator of the task may hold, in bytes.
func (t *Task) Cost() int64 { return t.cost }

// TimingPass returns a pass without tasks, to time the engine.
func TimingPass(m *Model, d *Data, batch int) *Pass {
	return &Pass{owner: passOwner{m, d}, Models: []*Model{m}, Hi: d.Layout.N, Batch: batch, cores: 1}
}
