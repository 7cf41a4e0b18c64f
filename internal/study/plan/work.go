package plan

import "slices"

// ModelWork is the remaining work of a run with Options.Only set to one model, comparisons with it
// as the first model included.
type ModelWork struct {
	Model      string
	Cells      int   // number of unfinished cells
	Passes     int   // how often samples are read from first to last, within the study's memory bound; each cell of a procedure counts as one
	Forwards   int64 // number of forward passes of one sample; for procedures an estimate, in which a step with a gradient counts as three
	Bytes      int64 // peak memory of the accumulators, within the same bound
	Blocks     int   // number of blocks of the largest data set: the largest useful number of shards, see Shard
	Parameters int64 // number of parameters of the model
	InputBytes int64 // size of one input of the model, in bytes
}

// Work returns the unfinished work of each model, in the order of the study, and runs nothing.
func (p *Plan) Work(o Options) []ModelWork {
	var out []ModelWork
	for _, m := range p.Models {
		if !p.includes(m.Entry.Name) {
			continue
		}
		w := ModelWork{Model: m.Entry.Name, Parameters: m.Net.Parameters(), InputBytes: m.Net.InputBytes()}
		cells := slices.DeleteFunc(slices.Clone(p.Cells), func(c *Cell) bool { return c.Model != m || c.Done })
		w.Cells = len(cells)
		for _, c := range cells {
			w.Blocks = max(w.Blocks, c.Data.Layout.Blocks())
			if c.Procedure != nil {
				w.Passes++
				w.Forwards += c.Procedure.Method.Work(&c.Procedure.Job)
			}
		}
		for _, pass := range Passes(cells, Limits{Memory: int64(p.Study.Memory), Cores: o.Workers()}, o.Shard) {
			w.Passes++
			w.Forwards += pass.Forwards()
			w.Bytes = max(w.Bytes, pass.Cost())
		}
		out = append(out, w)
	}
	return out
}
