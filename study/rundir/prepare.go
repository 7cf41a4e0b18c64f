package rundir

import "github.com/noether-ml/noether/study/plan"

// Resume marks in a plan the cells (each a measure for one model, data set, transformation value
// and trial) that the run folder dir already holds, and the saved states of the others.
func Resume(p *plan.Plan, dir string, o plan.Options) error {
	return (&Writer{Plan: p, Folder: Folder{dir}, Options: o}).Resume()
}

// Prepare makes the run folder dir and writes run.json and the resolved study (study.yaml, with the
// hashes of models and data), which runs of some of the models (Options.Only) need.
func Prepare(p *plan.Plan, dir string, o plan.Options) error {
	folder, err := Create(dir, o.Warnf)
	if err != nil {
		return err
	}
	r, err := NewWriter(p, folder, o)
	if err != nil {
		return err
	}
	if err := r.Resume(); err != nil {
		return err
	}
	_, err = r.writeRecord(false)
	return err
}
