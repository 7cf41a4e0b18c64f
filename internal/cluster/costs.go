package cluster

import (
	"context"

	"github.com/noether-ml/noether/internal/study"
)

// Measure predicts the cost of the remaining work of one model by study.Estimate.
func Measure(ctx context.Context, s *study.Study, run string, w study.Work, o study.Options) (Cost, error) {
	o.Only, o.Warn = []string{w.Model}, func(string) {} // the plan of all models has warned
	plan, err := study.NewPlan(ctx, s, o)
	if err != nil {
		return Cost{}, err
	}
	defer plan.Close()
	costs, err := study.Estimate(ctx, plan, run, o)
	if err != nil {
		return Cost{}, err
	}
	out := Cost{Model: w.Model, Blocks: w.Blocks, Measured: true}
	for _, c := range costs { // one for each data set
		out.Open += c.Open.Seconds()
		out.Samples += (c.Read + c.Engine + c.Measure + c.Save).Seconds()
		out.Scores += c.Score.Seconds()
		out.Memory = max(out.Memory, c.Peak)
	}
	return out, nil
}

// guess returns a cost in an unknown unit: parameters x values of an input x forward passes.
func guess(w study.Work) Cost {
	return Cost{Model: w.Model, Blocks: w.Blocks,
		Samples: float64(max(1, w.Parameters)) * float64(max(1, w.InputBytes/4)) * float64(w.Forwards)}
}

// Costs returns the cost of each model: that of measure, or a guess where measure is nil or fails;
// Cost.Note then has the error. If some models were measured, the guesses for the others are scaled
// to seconds. A model without unfinished cells costs nothing. Costs returns an error only if ctx
// ends.
func Costs(ctx context.Context, work []study.Work, measure func(context.Context, study.Work) (Cost, error)) ([]Cost, error) {
	out := make([]Cost, len(work))
	var measured, guessed float64
	for i, w := range work {
		out[i] = guess(w)
		if measure == nil || w.Cells == 0 {
			continue
		}
		cost, err := measure(ctx, w)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			out[i].Note = err.Error()
		default:
			measured += cost.total()
			guessed += out[i].Samples
			out[i] = cost
		}
	}
	for i := range out {
		if c := &out[i]; !c.Measured && guessed > 0 {
			c.Samples *= measured / guessed
		}
	}
	return out, nil
}
