package results

import "github.com/noether-ml/noether/internal/study/plan"

// Resume marks the cells and states that the run folder dir already holds.
func Resume(p *plan.Plan, dir string, o plan.Options) error {
	f := open(dir).ownLogs(o)
	defer f.close()
	return (&Writer{Plan: p, Folder: f, Options: o}).Resume()
}

// Prepare makes the run folder dir with run.json and study.yaml, which runs with Options.Only need.
func Prepare(p *plan.Plan, dir string, o plan.Options) error {
	if err := p.Study.WholeRun(); err != nil {
		return err
	}
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
