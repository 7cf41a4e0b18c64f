package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/noether-ml/noether/internal/study/spec"
)

// A Change overrides resources that the Slurm scripts of a submission request. A submission is a
// study divided into tasks, and a merge: the job that combines their results.
type Change struct {
	Memory spec.Size // of a task, and of the merge; 0: unchanged
	Time   Duration  // limit of a task, and of the merge; 0: unchanged
}

// options returns the flags of sbatch for a change. They override those in a script.
func (c Change) options() []string {
	var options []string
	if c.Memory > 0 {
		options = append(options, fmt.Sprintf("--mem=%dM", (c.Memory+mebibyte-1)/mebibyte))
	}
	if c.Time > 0 {
		options = append(options, "--time="+slurmDuration(time.Duration(c.Time)))
	}
	return options
}

// ErrNothingToRetry is returned by Retry if there is nothing to submit: every task is done, queued
// or running, and the merge has neither ended without a result nor lacks cells.
var ErrNothingToRetry = errors.New("every task is done, queued or running")

// Retry submits the tasks that are neither done, queued nor running, with the scripts that are now
// in run, the run folder (of all files and results), and a merge after them. They resume from the
// unfinished results that they saved. If only the merge has ended without a result or lacks cells
// (each one measure of one model on one data set under one transformation value), Retry submits it
// alone. It returns the numbers of the tasks; nil for the merge alone. While tasks are running or
// in an unknown state, it is an error if the status has a Note, such as that the scheduler did not
// answer. r is the record of all submissions of the run folder.
func (c Slurm) Retry(ctx context.Context, run string, r *Record, s *Submission, change Change) ([]int, error) {
	status, err := Find(ctx, run, s)
	if err != nil {
		return nil, err
	}
	if status.Note != "" && status.Count(Unknown)+status.Count(Running) > 0 {
		return nil, errors.New(status.Note) // running tasks could be mistaken for failed tasks
	}
	var tasks []int
	for _, t := range status.Tasks {
		if t.MustRetry() {
			tasks = append(tasks, t.Number)
		}
	}
	// Merge is missing if the merge ran and lacks cells.
	if len(tasks) == 0 && (status.mustRetryMerge() || status.Merge == missing) {
		return nil, c.queueMerge(ctx, run, r, s, change.options())
	}
	if len(tasks) == 0 {
		return nil, ErrNothingToRetry
	}
	return tasks, c.queue(ctx, run, r, s, tasks, change.options())
}

// ErrMergeEnded is the error of Wait if the merge has ended without a result, or lacks cells.
var ErrMergeEnded = errors.New("the merge has ended without all scores")

// Wait waits until no task of a submission, nor its merge, is queued or running, and returns the
// status, which it determines at intervals of every. The error is ErrMergeEnded if the merge has
// ended without a result, or lacks cells.
func Wait(ctx context.Context, run string, s *Submission, every time.Duration) (*Status, error) {
	ended := false
	for {
		status, err := Find(ctx, run, s)
		if err != nil {
			return nil, err
		}
		incomplete := status.mustRetryMerge() || status.Merge == missing && !status.Active()
		switch {
		case incomplete && ended:
			return status, ErrMergeEnded
		case incomplete: // the record of the merge may appear late on a file server: check twice
			ended = true
		case !status.Active():
			return status, nil
		default:
			ended = false
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return status, context.Cause(ctx)
		}
	}
}
