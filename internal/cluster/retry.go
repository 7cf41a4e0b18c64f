package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/noether-ml/noether/internal/study/spec"
)

// A Change overrides resources that the scripts of a submission request, for the tasks and for the
// merge.
type Change struct {
	Memory spec.Size // 0: unchanged
	Time   Duration  // limit; 0: unchanged
}

// options returns the flags of sbatch for a change. They override those in a script.
func (c Change) options() []string {
	var options []string
	if c.Memory > 0 {
		options = append(options, fmt.Sprintf("--mem=%dM", mebibytes(int64(c.Memory))))
	}
	if c.Time > 0 {
		options = append(options, "--time="+slurmDuration(time.Duration(c.Time)))
	}
	return options
}

// ErrNothingToRetry is returned by Retry if every task is done, queued or running, and the merge
// has neither ended without a result nor lacks cells.
var ErrNothingToRetry = errors.New("every task is done, queued or running")

// Retry submits the tasks that are neither done, queued nor running, with the scripts in the run
// folder, and a merge after them. If only the merge has ended without a result or lacks cells,
// Retry submits it alone. It returns the numbers of the tasks; nil for the merge alone. While tasks
// are running or in an unknown state, it is an error if the status has a Note, such as that the
// scheduler did not answer.
func (c Slurm) Retry(ctx context.Context, run string, r *Record, s *Submission, change Change) ([]int, error) {
	status, err := Find(ctx, run, s)
	if err != nil {
		return nil, err
	}
	if status.Note != "" && status.Count(Unknown)+status.Count(Running) > 0 {
		return nil, errors.New(status.Note) // running tasks could be mistaken for failed tasks
	}
	tasks := status.Retry()
	switch {
	case len(tasks) > 0:
		return tasks, c.queue(ctx, run, r, s, tasks, change.options())
	case status.mustRetryMerge() || status.Merge == missing:
		return nil, c.queueMerge(ctx, run, r, s, "", change.options())
	}
	return nil, ErrNothingToRetry
}

// ErrMergeEnded is the error of Wait if the merge has ended without a result, or lacks cells.
var ErrMergeEnded = errors.New("the merge has ended without all scores")

// Wait waits until no task of a submission, nor its merge, is queued or running, and returns the
// status, which it determines at intervals of every.
func Wait(ctx context.Context, run string, s *Submission, every time.Duration) (*Status, error) {
	ended := false
	for {
		status, err := Find(ctx, run, s)
		if err != nil {
			return nil, err
		}
		incomplete := status.mustRetryMerge() || status.Merge == missing && !status.Active()
		switch {
		case incomplete && ended: // twice, since the merge's record may appear late on a file server
			return status, ErrMergeEnded
		case !incomplete && !status.Active():
			return status, nil
		}
		ended = incomplete
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return status, context.Cause(ctx)
		}
	}
}
