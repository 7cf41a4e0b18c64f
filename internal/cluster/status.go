package cluster

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/plural"
	"github.com/noether-ml/noether/scores"
)

// States of a task that Find determines. A task is a job of a cluster that measures some models of
// a study, or a part of its samples. A task itself writes the states Running, Done, Failed and
// Stopped (interrupted, to be continued).
const (
	Queued    = "queued"    // in the queue of the scheduler
	Killed    = "killed"    // it started, but neither wrote a final state nor is in the queue
	Lost      = "lost"      // it never started, and is not in the queue
	Cancelled = "cancelled" // by Cancel
	Unknown   = "unknown"   // the scheduler did not answer
)

// missing is the state of a merge, the job that combines the results of all tasks, that ran and did
// not find the scores of all cells (Status.Cells).
const missing = "missing"

// A TaskStatus is the status of a task. TaskState is what the task last wrote to its state file.
type TaskStatus struct {
	Number int  `json:"task"`
	Task   Task `json:"what"`
	// State is one of Queued, Running, Done, Failed, Stopped, Killed, Lost, Cancelled and Unknown.
	State string `json:"state"`
	// Note is the reason: the scheduler's, or the task's error.
	Note string `json:"note,omitempty"`
	TaskState
}

// MustRetry reports whether the task has ended without finishing, so that it must be submitted
// again.
func (t TaskStatus) MustRetry() bool {
	return !slices.Contains([]string{Done, Running, Queued, Unknown}, t.State)
}

// A Status is the status of a submission: a study that was divided into tasks for a scheduler.
type Status struct {
	Submission int          `json:"submission"`
	Scheduler  string       `json:"scheduler"`
	Tasks      []TaskStatus `json:"tasks"`
	// Merge is the state of the merge: waiting (for the tasks, or not known), queued, running, done
	// or missing (cells); if it has ended without a result, cancelled, failed, killed or lost.
	Merge string `json:"merge"`
	Note  string `json:"note,omitempty"` // a remark on the whole submission
	// Cells is the number of cells of the study; 0 if the run folder has no record (run.json) yet.
	// A cell is one measure of one model on one data set, under one transformation value, in one
	// trial (an independent repetition of all random draws).
	Cells int `json:"cells"`
	Done  int `json:"done"` // finished cells
}

// Count returns the number of tasks in a state.
func (s *Status) Count(state string) int {
	n := 0
	for _, t := range s.Tasks {
		if t.State == state {
			n++
		}
	}
	return n
}

// Active reports whether tasks are queued, running or unknown, or the merge is queued or
// running.
func (s *Status) Active() bool {
	return s.tasksActive() || s.Merge == Queued || s.Merge == Running
}

func (s *Status) tasksActive() bool {
	return s.Count(Queued)+s.Count(Running)+s.Count(Unknown) > 0
}

// mustRetryMerge reports whether the merge has ended without a result, so that it must be submitted
// again.
func (s *Status) mustRetryMerge() bool {
	return slices.Contains([]string{Cancelled, Failed, Killed, Lost}, s.Merge)
}

// killedAfter is the time without a heartbeat (the regular write of a running task's state file)
// after which the task counts as killed if there is no scheduler to query. If that is wrong and the
// task is submitted again, no harm is done: two tasks with the same work give the same scores.
const killedAfter = 15 * time.Minute

// Find determines the status of a submission from the state files of its tasks and the queue of the
// scheduler. run is the run folder, which holds the results. If the scheduler does not answer,
// Status.Note says so; this is no error. Find returns an error if it cannot write to the run
// folder, whose clock it reads, or if ctx ends.
func Find(ctx context.Context, run string, s *Submission) (*Status, error) {
	out := &Status{Submission: s.Number, Scheduler: s.Scheduler}
	l := lookup{submission: s, jobs: map[int]string{}}
	// A job is an array of tasks and its merge. Retries add jobs; the last one of a task counts.
	for _, j := range s.Jobs {
		for _, n := range j.Tasks {
			l.jobs[n] = j.ID
		}
	}
	if s.Scheduler == "slurm" {
		var err error
		if l.queue, err = (Slurm{}).activeJobs(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			out.Note = "the scheduler does not answer; the states are those that the tasks have written: " + err.Error()
		}
		l.finalStates = func(job string) map[int]string { return Slurm{}.finalStates(ctx, job) }
	}
	var err error
	if l.now, err = atomicfile.Clock(folder(run, s.Number, "tasks")); err != nil {
		return nil, fmt.Errorf("the run folder: %w", err)
	}
	for i, task := range s.Tasks {
		t := TaskStatus{Number: i + 1, Task: task}
		state, at, err := readTask(taskFile(run, s.Number, i+1))
		switch {
		case err == nil:
			t.TaskState = state
		case !isMissing(err):
			t.Note = err.Error()
		}
		l.setState(&t, err == nil, at)
		out.Tasks = append(out.Tasks, t)
	}
	var note string
	out.Merge, note = l.merge(out.tasksActive())
	if r, err := scores.ReadRecord(filepath.Join(run, "run.json")); err == nil {
		out.Cells, out.Done = r.Cells, r.Done
		switch {
		case r.Finished != nil:
			out.Merge, out.Done = Done, r.Cells
		case len(r.Missing) > 0 && out.Merge != Queued && out.Merge != Running:
			out.Merge = missing
			m := r.Missing[0]
			out.Note = strings.TrimPrefix(out.Note+"; "+printable(fmt.Sprintf("the merge lacks cells of %s, such as %s", plural.Of(len(r.Missing), "model"), m.Example)), "; ")
		}
	}
	if out.mustRetryMerge() {
		out.Note = strings.TrimPrefix(out.Note+"; the merge "+note+": noether cluster retry submits it again", "; ")
	}
	return out, nil
}

// A lookup holds what the scheduler and the submission know about tasks.
type lookup struct {
	submission  *Submission
	jobs        map[int]string              // the last job that was submitted for a task
	queue       map[jobTask]queueEntry      // nil if the scheduler was not queried or does not answer
	finalStates func(string) map[int]string // of the tasks of a job; nil if there is no scheduler
	known       map[string]map[int]string   // cached results of finalStates, by job
	now         time.Time                   // by the clock of the run folder
}

// setState determines the state of a task. reported is true if the task has written its state, at
// the time at. At the call, t.TaskState is what the task has written, and t.Note is the error of
// reading that, or empty.
func (l *lookup) setState(t *TaskStatus, reported bool, at time.Time) {
	t.State = t.TaskState.State
	t.Note = cmp.Or(t.Error, t.Note)
	job := l.jobs[t.Number]
	t.Job = cmp.Or(job, t.Job)
	if t.State == Done && reported {
		return
	}
	if job != "" && l.queue != nil {
		if q, ok := l.queue[jobTask{job, t.Number}]; ok {
			t.State, t.Note = q.state(), q.Reason
			if t.State == Running {
				t.Note = ""
			}
			return
		}
	}
	switch {
	case t.State == Failed: // the state that the task has written is final
	case l.submission.Cancelled != nil && (l.queue != nil || job == ""):
		t.State = Cancelled
	case l.submission.Scheduler != "slurm": // only the states that tasks write are known
		switch {
		case !reported:
			t.State = Queued
		case t.State == Stopped && l.now.Sub(at) <= killedAfter:
			// The pod was evicted, and Kubernetes starts another.
			t.State, t.Note = Queued, "stopped; starts again"
		case t.State == Running && l.now.Sub(at) > killedAfter:
			t.State, t.Note = Killed, fmt.Sprintf("no heartbeat for %v", l.now.Sub(at).Round(time.Second))
		}
	case job == "":
		t.State, t.Note = Lost, "it was not submitted"
	case l.queue == nil:
		if !reported {
			t.State = Unknown
		}
	case !reported:
		t.State, t.Note = Lost, cmp.Or(l.finalState(job, t.Number), t.Note)
	case t.State == Running:
		t.State, t.Note = Killed, l.finalState(job, t.Number)
	}
}

// finalState returns the final state of a task as the scheduler reports it, in lower case; "" if it
// does not know.
func (l *lookup) finalState(job string, task int) string {
	if l.finalStates == nil {
		return ""
	}
	if l.known == nil {
		l.known = map[string]map[int]string{}
	}
	if _, ok := l.known[job]; !ok {
		l.known[job] = l.finalStates(job)
	}
	return strings.ToLower(strings.ReplaceAll(l.known[job][task], "_", " "))
}

// merge returns the state of the last merge, and how it has ended if it is no longer in the queue.
// tasksActive is true if tasks are queued, running or unknown.
func (l *lookup) merge(tasksActive bool) (state, note string) {
	for _, j := range slices.Backward(l.submission.Jobs) {
		if q, ok := l.queue[jobTask{job: j.Merge}]; ok && j.Merge != "" {
			return q.state(), ""
		}
	}
	if tasksActive || l.queue == nil || len(l.submission.Jobs) == 0 {
		return "waiting", ""
	}
	last := l.submission.Jobs[len(l.submission.Jobs)-1]
	if last.Merge == "" {
		return Lost, "was not submitted"
	}
	switch end := l.finalState(last.Merge, 0); {
	case end == "cancelled" || l.submission.Cancelled != nil:
		return Cancelled, "was cancelled"
	case end == "failed" || end == "completed":
		// A completed merge writes what it did to the record, from which Find sets its state. If the
		// record does not say it, the merge has failed.
		return Failed, "has failed; noether cluster logs shows why"
	case end == "":
		return Lost, "is no longer known to the scheduler"
	default:
		return Killed, "was killed (" + end + ")"
	}
}

// state returns Queued or Running for the state of a job in Slurm's queue.
func (q queueEntry) state() string {
	switch q.State {
	case "PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "SUSPENDED", "STOPPED":
		return Queued
	default:
		return Running
	}
}
