package plan

import "slices"

// ModelWork is what is left of a study for one model to do: its own cells, and those that compare
// it with later models. It is what Run does with Options.Only naming that model.
type ModelWork struct {
	Model      string
	Cells      int
	Passes     int
	Forwards   int64 // samples that the engine will run
	Bytes      int64 // the most that accumulators hold at once
	Blocks     int   // the most parts that have samples: those of the largest data set
	Parameters int64 // of the model
	InputBytes int64 // of an image as the model takes it
}

// Work tells what each model of the plan has to do, in the order of the study, without running
// anything. Cells that are done are left out.
func (p *Plan) Work(o Options) []ModelWork {
	var out []ModelWork
	for _, m := range p.Models {
		if !p.runs(m.Entry.Name) {
			continue
		}
		w := ModelWork{Model: m.Entry.Name, Parameters: m.Net.Graph().Parameters(), InputBytes: m.Net.InputBytes()}
		cells := slices.DeleteFunc(slices.Clone(p.Cells), func(c *Cell) bool { return c.Model != m || c.Done })
		w.Cells = len(cells)
		for _, c := range cells {
			w.Blocks = max(w.Blocks, c.Data.Layout.Blocks())
			if c.Procedure != nil {
				w.Passes++
				w.Forwards += c.Procedure.Method.Work(&c.Procedure.Job)
			}
		}
		for _, pass := range Passes(cells, Limits{Memory: int64(p.Study.Memory), Cores: o.Cores()}, o.Part) {
			w.Passes++
			w.Forwards += pass.Forwards()
			w.Bytes = max(w.Bytes, pass.cost())
		}
		out = append(out, w)
	}
	return out
}
