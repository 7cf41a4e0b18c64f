package results

import "github.com/noether-ml/noether/internal/study/plan"

// Resume marks in a plan the cells that the run folder dir already holds, and the states of the
// others.
func Resume(p *plan.Plan, dir string, o plan.Options) error {
	f := open(dir).ownLogs(o)
	defer f.close()
	return (&Writer{Plan: p, Folder: f, Options: o}).Resume()
}

// Prepare makes the run folder dir and writes the record of the run (run.json) and the resolved
// study (study.yaml, with the hashes of models and data). Runs that each take only some of the
// models (Options.Only) need them.
func Prepare(p *plan.Plan, dir string, o plan.Options) error {
	folder, err := Create(dir, o.Warnf)
	if err != nil {
		return err
	}
	r, err := NewWriter(p, folder, o)
	if err != nil {
		return err
	}
	defer r.Folder.close()
	if err := r.Resume(); err != nil {
		return err
	}
	_, err = r.writeRecord(false)
	return err
}
