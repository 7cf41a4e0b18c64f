package study

import "slices"

// Work is what is left of a study for one model to do: its own cells, and those that compare it with later models. It
// is what Run does with Options.Only naming that model.
type Work struct {
	Model      string
	Cells      int
	Passes     int
	Forwards   int64 // samples that the engine will run
	Bytes      int64 // the most that accumulators hold at once
	Blocks     int   // the most parts that have samples: those of the largest data set
	Parameters int64 // of the model
	InputBytes int64 // of an image as the model takes it
}

// Work tells what each model of the plan has to do, in the order of the study, without running anything. What the run
// folder dir, unless it is "", holds already is left out.
func (p *Plan) Work(dir string, o Options) ([]Work, error) {
	r := &runner{plan: p, folder: Folder{dir}, o: o}
	if dir != "" {
		if err := r.resume(); err != nil {
			return nil, err
		}
	}
	var out []Work
	for _, m := range p.models {
		if !p.runs(m.spec.Name) {
			continue
		}
		w := Work{Model: m.spec.Name, Parameters: m.model.Graph().Parameters(), InputBytes: m.model.InputBytes()}
		cells := slices.DeleteFunc(slices.Clone(p.Cells), func(c *Cell) bool { return c.Model != m || c.done })
		w.Cells = len(cells)
		for _, c := range cells {
			w.Blocks = max(w.Blocks, c.Data.layout.Blocks())
			if c.work != nil {
				w.Passes++
				w.Forwards += c.work.procedure.Work(&c.work.job)
			}
		}
		for _, pass := range passes(cells, bound{int64(p.Study.Memory), o.cores()}, o.Part) {
			w.Passes++
			w.Forwards += pass.forwards()
			w.Bytes = max(w.Bytes, pass.cost())
		}
		out = append(out, w)
	}
	return out, nil
}

// Prepare makes the run folder and writes the study as resolved, for runs of some of the models (Options.Only) to read.
func (p *Plan) Prepare(dir string, o Options) error {
	folder, err := createFolder(dir)
	if err != nil {
		return err
	}
	r, err := newRunner(p, folder, o)
	if err != nil {
		return err
	}
	if err := r.resume(); err != nil {
		return err
	}
	_, err = r.writeRecord(false)
	return err
}
