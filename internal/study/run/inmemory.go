package run

import (
	"context"

	"github.com/noether-ml/noether/internal/study/internal/telemetry"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/results"
)

// InMemory runs every cell of a plan without a run folder. The scores are in the fields Scored of
// the cells' tasks, each the work of one accumulator.
func InMemory(ctx context.Context, p *plan.Plan) error {
	w := &results.Writer{Plan: p, Options: plan.Options{FailFast: true}, Log: telemetry.NewLogger(nil), Stats: p.Stats}
	r := &runner{Writer: w, accs: map[*plan.Task]plan.Accumulator{}}
	// The zero Shard is all samples.
	for _, pass := range plan.Passes(p.Cells, plan.Limits{Memory: int64(p.Study.Memory), Cores: r.Options.Workers()}, plan.Shard{}) {
		if err := r.measurePass(ctx, pass); err != nil {
			return err
		}
	}
	return nil
}

// measurePass runs a pass and saves nothing.
func (r *runner) measurePass(ctx context.Context, p *plan.Pass) error {
	f, err := r.newFeeder(p)
	if err != nil {
		return err
	}
	defer f.close()
	if err := f.run(ctx, func(int) error { return ctx.Err() }); err != nil {
		return err
	}
	for _, t := range p.AllTasks() {
		if t.Scored, err = t.Compute(r.accs[t]); err != nil {
			return err
		}
	}
	return nil
}
