// Package proceduretest runs a procedure in a test as a study would run it.
package proceduretest

import (
	"context"
	"errors"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/checkpoint"
	"github.com/noether-ml/noether/internal/procedure"
	"github.com/noether-ml/noether/measure"
)

// Job returns a job with a checkpoint in memory. Unreadable samples are left out. The caller sets
// the other fields that the procedure needs.
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

// RunJob runs a job and returns its scores. It ends the test if err is not nil, or if the procedure
// skips the job or returns an error.
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
