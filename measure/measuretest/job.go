package measuretest

import (
	"context"
	"errors"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/checkpoint"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/procedure"
)

// Job is one for a procedure, of one model and data, as a study would make it: with a checkpoint in memory, and samples that cannot be
// read left out, however many. What else a procedure wants is set by the caller.
func Job(a procedure.Subject, data dataset.Source) *procedure.Job {
	return &procedure.Job{A: a, Data: data, Key: measure.Key{Seed: 1}, Checkpoint: &checkpoint.Memory{},
		Memory: 1 << 30, Progress: func(int64, string) {},
		Read: func(ctx context.Context, places []int, f dataset.Frame) ([]dataset.Sample, error) {
			var list []dataset.Sample
			for s, err := range dataset.Read(ctx, data, places, f, dataset.ReadOptions{}) {
				var bad *dataset.BadSample
				if errors.As(err, &bad) {
					continue
				}
				if err != nil {
					return nil, err
				}
				list = append(list, s)
			}
			return list, nil
		}}
}

// RunJob does a job that a procedure must not skip. Err is that of making the procedure.
func RunJob(t testing.TB, p procedure.Procedure, err error, j *procedure.Job) []measure.PairScore {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if why := p.Skip(j); why != "" {
		t.Fatalf("skipped: %s", why)
	}
	scores, err := p.Run(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	return scores
}
